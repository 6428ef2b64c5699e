"""Scripts: what is refused, and where (line and column)."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner_service.agents.script_loader import ScriptError, load_script, parse_script
from runner_service.agents.scripted import DEMO_SCRIPT

GOOD = """\
agents:
  a:
    description: An agent
    tools:
      pay: {permission: ask, does: [{count: n.txt}], output: {n: "${count}"}}
      scan: {executor: client, kind: scanner}
    turns:
      - when: {text: trip}
        steps:
          - parts:
              - text: "Hello ${user.text}"
                pace: 20ms
              - call: request_input
                id: form
                arguments: {message: hi}
              - call: pay
          - when: {call: form, outcome: accepted}
            parts:
              - text: "to ${results.form.content.city|x}"
          - parts: [{text: no}]
"""


def test_a_good_script_is_read() -> None:
    script = parse_script(GOOD, "good.yaml")
    assert list(script.agents) == ["a"]


def test_the_demo_is_a_good_script() -> None:
    assert "demo" in load_script(DEMO_SCRIPT).agents


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pace: 20ms", "pase: 20ms", "12:17: unknown key 'pase' (did you mean pace?)"),
        ("pace: 20ms", "times: 3", "12:17: unknown key 'times'; known here are text, pace, repeat"),
        ("pace: 20ms", "pace: 20", "12:17: must be a duration such as 200ms"),
        (
            "id: form",
            "id: from",
            "17:13: no call of this turn has the id 'form' (did you mean from?)",
        ),
        ("results.form", "results.frm", "17:13: no call of this turn has the id 'frm'"),
        ("results.form", "reslts.form", "19:17: nothing is named 'reslts' (did you mean results?)"),
        ("${user.text}", "${user.text", "11:17: a placeholder ${ is not closed"),
        (
            "- call: request_input",
            "- call: request_inptu",
            "13:17: no tool is named 'request_inptu'",
        ),
        ("- call: pay", "- call: pey", "16:17: no tool is named 'pey' (did you mean pay?)"),
        ("kind: scanner", "kin: scanner", "6:32: unknown key 'kin' (did you mean kind?)"),
        ("permission: ask", "permission: aks", "5:13: input should be 'allow', 'ask'"),
        ("outcome: accepted", "outcome: acepted", "17:32: input should be 'answered'"),
        ("call: form, outcome: accepted", "call: form", "17:13: call and outcome belong together"),
        ('- text: "Hello', '- txt: "Hello', "11:17: must have one of text"),
        ("{count: n.txt}", "{coun: n.txt}", "5:38: must have one of append"),
        ("agents:", "agens:", "1:1: unknown key 'agens' (did you mean agents?)"),
        ("steps:", "stps:", "9:9: unknown key 'stps' (did you mean steps?)"),
        ("text: trip", "text: (", "8:16: is no regular expression"),
        ("message: hi", "message: .nan", "15:17: is no value that JSON knows"),
        ("message: hi", "message: [hi", "15:41: "),
        ("id: form", "id: form\n                id: form", "15:17: the key 'id' stands here twice"),
        (
            "  a:\n",
            "  request: {tools: {request_input: {}}}\n  a:\n",
            "2:13: request_input is built in",
        ),
        (
            "- call: pay",
            "- {call: pay, id: form}",
            "10:13: two calls of this turn have the id 'form'",
        ),
        ("parts: [{text: no}]", "parts: no", "20:13: input should be a valid list"),
        (
            "- parts: [{text: no}]",
            "- parts: [{text: no}]\n          - parts: [{text: never}]",
            "21:13: no step is ever reached after one that makes no call",
        ),
    ],
)
def test_a_problem_is_told_with_its_place(old: str, new: str, problem: str) -> None:
    assert old in GOOD
    with pytest.raises(ScriptError) as refused:
        parse_script(GOOD.replace(old, new, 1), "s.yaml")
    assert f"s.yaml:{problem}" in str(refused.value)


def test_all_problems_are_told() -> None:
    text = GOOD.replace("pace", "pase").replace("kind:", "kin:")
    with pytest.raises(ScriptError) as refused:
        parse_script(text, "s.yaml")
    assert len(refused.value.problems) == 2
    assert str(refused.value).endswith("(and 1 more)")


@pytest.mark.parametrize("text", ["", "agents: {}", "agents:", "[]", "just text", "a: &a [*a]"])
def test_what_is_no_script_is_refused(text: str) -> None:
    with pytest.raises(ScriptError):
        parse_script(text, "s.yaml")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="No such file"):
        load_script(tmp_path / "none.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"agents: \xff")
    with pytest.raises(ScriptError, match="not UTF-8 at byte 8"):
        load_script(bad)
