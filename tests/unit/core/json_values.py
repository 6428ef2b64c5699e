"""Hypothesis strategies for JSON values and the texts of numbers."""

from __future__ import annotations

from hypothesis import strategies as st

from turngate_core.json_text import JsonValue
from turngate_core.number import Number

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

literals = st.from_regex(
    r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,4})?", fullmatch=True
).map(lambda literal: literal.strip())

numbers = literals.map(Number)

scalars: st.SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), texts, numbers)

values: st.SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
