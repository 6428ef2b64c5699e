"""T3: ids of copies; T4: typed synthetic results."""

from __future__ import annotations

import pytest

from turngate_core.ids import copy_message_id, is_message_id, split_message_id
from turngate_core.synthetic import SyntheticReason, is_answer, text_for_model


def test_t3_a_client_computes_the_id_of_a_copy_and_goes_back() -> None:
    copy = copy_message_id("m-1", "run-2")
    assert copy == "m-1@run-2"
    assert split_message_id(copy) == ("m-1", "run-2")
    assert split_message_id("m-1") == ("m-1", None)


def test_t3_a_copy_of_a_copy_keeps_the_original() -> None:
    assert copy_message_id(copy_message_id("m-1", "run-2"), "run-3") == "m-1@run-3"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("m-1", True),
        ("A.b_c:d-9", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("m-1@run-2", False),
        ("m 1", False),
        ("m-1\n", False),
        ("é", False),
    ],
)
def test_t3_ids_that_a_client_may_choose(text: str, good: bool) -> None:
    assert is_message_id(text) is good


def test_t4_the_model_is_told_each_reason_in_words_of_its_own() -> None:
    told = {text_for_model(reason) for reason in SyntheticReason}
    assert len(told) == len(SyntheticReason)
    assert text_for_model(SyntheticReason.DENIED, "too dear").endswith("Reason: too dear")


def test_x4_which_reasons_are_answers() -> None:
    assert {reason.value for reason in SyntheticReason if is_answer(reason)} == {
        "expired",
        "denied",
        "not_handled",
        "degraded",
    }
