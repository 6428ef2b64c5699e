"""Structured logs on standard error: JSON lines, or a readable console where that is a terminal.

What the libraries log through `logging` (gRPC, asyncio) comes out in the same form. Neither
secrets nor what people and models said is logged: values under such names are left out.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Literal, TextIO

import structlog

LogLevel = Literal["debug", "info", "warning", "error"]

_SECRETS = (
    "access_token",
    "api_key",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "dsn",
    "password",
    "refresh_token",
    "secret",
    "token",
)
_CONTENTS = (
    "arguments",
    "body",
    "content",
    "message_text",
    "output",
    "parts",
    "prompt",
    "request",
    "response",
    "text",
)
_LEFT_OUT = frozenset((*_SECRETS, *_CONTENTS))
LEFT_OUT = "(left out)"


def configure_logs(
    service: str, level: LogLevel, *, stream: TextIO | None = None, pretty: bool | None = None
) -> None:
    """Set up the logs of this process; the last call counts.

    `service` stands in each line, since services may share a terminal. `pretty`: by default
    whether `stream` (standard error) is a terminal.
    """
    stream = stream or sys.stderr
    if pretty is None:
        pretty = stream.isatty()
    number = logging.getLevelNamesMapping()[level.upper()]

    def name_service(
        logger: object, method: str, event: MutableMapping[str, object]
    ) -> MutableMapping[str, object]:
        event["service"] = service
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        name_service,
        leave_out,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(number),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(pretty),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)


def _renderers(pretty: bool) -> list[structlog.typing.Processor]:
    # Tracebacks are without the values of local variables: these hold contents and secrets.
    if pretty:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


def leave_out(
    logger: object, method: str, event: MutableMapping[str, object]
) -> Mapping[str, object]:
    """Replace the values of names that stand for secrets or contents, at the top of an event."""
    for name in event.keys() & _LEFT_OUT:
        event[name] = LEFT_OUT
    return event
