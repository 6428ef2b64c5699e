"""A form is filled in field by field: checked, with a second try, from lines that were piped in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from turngate_client.cli.answers import LineAnswers, NoAnswer
from turngate_client.cli.form_filling import fill_form, question_of
from turngate_core.form_fields import Form
from turngate_core.forms import parse_form_text
from turngate_core.json_text import dump

TRIP = """{"message": "Where to?", "requestedSchema": {"type": "object", "properties": {
  "city": {"type": "string", "title": "City", "minLength": 2},
  "nights": {"type": "integer", "minimum": 1, "maximum": 30, "default": 2},
  "room": {"type": "string", "oneOf": [
    {"const": "dbl", "title": "Double"}, {"const": "sgl", "title": "Single"}]},
  "pets": {"type": "boolean"},
  "extras": {"type": "array", "items": {"type": "string", "enum": ["sauna", "boat"]}}
}, "required": ["city", "nights"]}}"""


def trip() -> Form:
    form = parse_form_text(TRIP)
    assert isinstance(form, Form)
    return form


@contextmanager
def piped(text: str) -> Iterator[LineAnswers]:
    """Answers from a pipe that holds the text and is then at its end."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        yield LineAnswers(reading)
    finally:
        os.close(reading)


async def filled(text: str) -> str:
    with piped(text) as answers:
        return dump(await fill_form(trip(), answers))


async def test_each_line_answers_a_field_in_order_of_definition() -> None:
    assert await filled("Visby\n3\nsgl\ny\nsauna, boat\n") == (
        '{"action":"accept","content":{"city":"Visby","nights":3,"room":"sgl","pets":true,'
        '"extras":["sauna","boat"]}}'
    )


async def test_an_empty_line_is_the_default_or_leaves_the_field_out() -> None:
    assert await filled("Visby\n\n\n\n\n") == (
        '{"action":"accept","content":{"city":"Visby","nights":2}}'
    )


async def test_an_option_may_be_named_by_its_title() -> None:
    assert '"room":"dbl"' in await filled("Visby\n3\ndouble\n\n\n")


async def test_F1_what_does_not_fit_is_said_and_asked_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = await filled("\nV\nVisby\nmany\n99\n3\n\nmaybe\nno\ntent\n\n")
    assert answer == '{"action":"accept","content":{"city":"Visby","nights":3,"pets":false}}'
    said = capsys.readouterr().out
    for problem in (
        "is required",
        "must have at least 2 characters",
        "must be a number",
        "must be at most 30",
        "must be true or false",
        "must hold only options",
    ):
        assert problem in said


async def test_T2_a_number_stays_as_it_was_typed() -> None:
    text = (
        '{"message":"n","requestedSchema":{"type":"object","properties":{"n":{"type":"number"}}}}'
    )
    form = parse_form_text(text)
    assert isinstance(form, Form)
    with piped("9007199254740993.10\n") as answers:
        answer = await fill_form(form, answers)
    assert dump(answer) == '{"action":"accept","content":{"n":9007199254740993.10}}'


@pytest.mark.parametrize("text", ["", "Visby\n", "Visby\n3\n"])
async def test_the_end_of_the_input_declines_with_a_note(text: str) -> None:
    assert await filled(text) == (
        '{"action":"decline","note":"Nobody filled the form in: the input has ended."}'
    )


async def test_three_answers_that_do_not_fit_decline() -> None:
    assert '"note":"Nobody filled the form in: 3 answers in a row did not fit."' in await filled(
        "Visby\nx\ny\nz\n3\n"
    )


async def test_only_refused_fields_are_asked_for_again() -> None:
    with piped("4\n") as answers:
        answer = await fill_form(
            trip(), answers, fields={"nights"}, content={"city": "Visby", "room": "sgl"}
        )
    assert dump(answer) == (
        '{"action":"accept","content":{"city":"Visby","room":"sgl","nights":4}}'
    )


async def test_a_last_line_without_its_end_and_bytes_that_are_no_text_count() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\xff\r\nlast")
    os.close(writing)
    answers = LineAnswers(reading)
    assert await answers.ask("first", lambda _: None) == "\ufffd"
    assert await answers.ask("second", lambda _: None) == "last"
    with pytest.raises(NoAnswer):
        await answers.ask("third", lambda _: None)
    with pytest.raises(NoAnswer):
        await answers.ask("fourth", lambda _: None)
    os.close(reading)


def test_a_question_says_what_is_wanted() -> None:
    form = trip()
    assert [question_of(form, field) for field in form.fields] == [
        "City",
        "nights (whole number) [2]",
        "room [none]",
        "pets (y/n) [none]",
        "extras (several, with commas) [none]",
    ]
