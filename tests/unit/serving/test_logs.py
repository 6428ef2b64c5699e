"""Logs: one JSON object a line, or a console; no secrets, no contents."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from turngate_serving.logs import LEFT_OUT, LogLevel, configure_logs


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def set_up(level: LogLevel = "info", *, pretty: bool | None = None) -> io.StringIO:
    stream = io.StringIO()
    configure_logs("broker", level, stream=stream, pretty=pretty)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_time_level_service_and_logger() -> None:
    stream = set_up()
    structlog.stdlib.get_logger("turngate.test").warning("lost a lease", run_id="r1", attempt=2)
    (line,) = lines(stream)
    assert str(line.pop("timestamp")).endswith("Z")
    assert line == {
        "event": "lost a lease",
        "run_id": "r1",
        "attempt": 2,
        "level": "warning",
        "logger": "turngate.test",
        "service": "broker",
    }


def test_libraries_log_in_the_same_form() -> None:
    stream = set_up()
    logging.getLogger("grpc").error("broken %s", "pipe")
    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["level"]) == ("broken pipe", "grpc", "error")


@pytest.mark.parametrize(
    ("level", "expected"),
    [("debug", ["d", "i", "w"]), ("info", ["i", "w"]), ("warning", ["w"]), ("error", [])],
)
def test_the_level_is_the_least_severe_that_is_written(
    level: LogLevel, expected: list[str]
) -> None:
    stream = set_up(level)
    for log in (structlog.stdlib.get_logger("ours"), logging.getLogger("theirs")):
        log.debug("d")
        log.info("i")
        log.warning("w")
    assert [line["event"] for line in lines(stream)] == expected * 2


def test_secrets_and_contents_are_left_out() -> None:
    stream = set_up()
    log = structlog.stdlib.get_logger("ours")
    log.info("settled", token="hunter2", arguments='{"card": 4711}', text="hi", run_id="r1")
    (line,) = lines(stream)
    assert (line["token"], line["arguments"], line["text"]) == (LEFT_OUT,) * 3
    assert line["run_id"] == "r1"
    assert "hunter2" not in stream.getvalue()
    assert "4711" not in stream.getvalue()


@pytest.mark.parametrize("pretty", [True, False])
def test_a_traceback_has_no_values_of_local_variables(pretty: bool) -> None:
    stream = set_up(pretty=pretty)

    def fails(local: str) -> None:
        raise RuntimeError("broken")

    try:
        fails("hunter2")
    except RuntimeError:
        structlog.stdlib.get_logger("ours").exception("unexpected error")
    text = stream.getvalue()
    assert "RuntimeError: broken" in text
    assert "in fails" in text
    assert "hunter2" not in text.replace('fails("hunter2")', "").replace('fails(\\"hunter2\\")', "")


def test_a_terminal_gets_a_console_and_anything_else_json() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    configure_logs("broker", "info", stream=terminal)
    structlog.stdlib.get_logger("ours").info("listening", address="127.0.0.1:1")
    assert "listening" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")
    assert lines(set_up()) == []
