"""One local HTTP server with the three wires, on a thread of its own.

with serving(in_turn(answer("Hello"))) as server:
    client = openai.OpenAI(base_url=server.openai_url, api_key=server.api_key)
    ...
    assert server.refused == []
"""

import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from json import JSONDecodeError, loads

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.providers.anthropic_messages import AnthropicMessages
from tests.providers.openai_chat import OpenAiChat
from tests.providers.openai_responses import OpenAiResponses
from tests.providers.recording import Exchange, dump
from tests.providers.refusal import Refused
from tests.providers.script import Answer, BrokenOff, Failure, Script, ScriptEnded, Silence
from tests.providers.wire import Admitted, Endpoint, Frame
from turngate_core.json_text import JsonLimits, parse

# Requests are larger than what a tool may return.
_LIMITS = JsonLimits(max_bytes=64 * 1024 * 1024, max_depth=200)


class ConnectionBroken(Exception):
    """The script breaks the connection; the server closes it without an end of the body."""


class ProviderServer:
    """The running fakes. `script` may be replaced between requests."""

    def __init__(self, script: Script, url: str) -> None:
        self.script = script
        self.url = url
        self.api_key = "sk-fake-0123456789"
        self.exchanges: list[Exchange] = []
        self.faults: list[Exception] = []
        self._endpoints: list[Endpoint] = [
            OpenAiChat(self.api_key),
            OpenAiResponses(self.api_key),
            AnthropicMessages(self.api_key),
        ]

    @property
    def openai_url(self) -> str:
        """The base URL for the client `openai` (OPENAI_BASE_URL)."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for the client `anthropic` (ANTHROPIC_BASE_URL)."""
        return self.url

    @property
    def refused(self) -> list[str]:
        """What was refused so far, in the provider's words. Empty in a test where all is well."""
        return [e.refusal for e in self.exchanges if e.refusal is not None]

    def recording(self) -> str:
        """All requests so far, normalised, for a golden file."""
        return dump(self.exchanges)

    def reset(self, script: Script) -> None:
        """Another script and an empty recording; what was minted stays known."""
        self.script = script
        self.exchanges = []
        self.faults = []

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route(endpoint.path, self._handler(endpoint), methods=["POST"])
                for endpoint in self._endpoints
            ],
            exception_handlers={Exception: self._faulty},
        )

    def _handler(self, endpoint: Endpoint) -> Callable[[HttpRequest], Awaitable[Response]]:
        async def handle(request: HttpRequest) -> Response:
            text = (await request.body()).decode()
            exchange = Exchange(endpoint.wire, text, None)
            self.exchanges.append(exchange)
            try:
                admitted = self._admit(endpoint, request, exchange)
                step = self._step(admitted)
            except Refused as refused:
                exchange.refusal = refused.message
                return self._error(endpoint, exchange, refused)
            failure = _failure_of(step, admitted.request.stream)
            if failure is not None:
                return self._error(endpoint, exchange, endpoint.failure(failure))
            assert isinstance(step, Answer)
            if admitted.request.stream:
                return StreamingResponse(
                    _stream(admitted.frames(step)), media_type="text/event-stream"
                )
            return StreamingResponse(_stream(_whole(admitted, step)), media_type="application/json")

        return handle

    def _admit(self, endpoint: Endpoint, request: HttpRequest, exchange: Exchange) -> Admitted:
        try:
            body = loads(exchange.text)
        except JSONDecodeError as error:
            text = f"We could not parse the JSON body of your request: {error}"
            raise Refused(400, text) from error
        exchange.body = parse(exchange.text, _LIMITS)
        if not isinstance(body, dict):
            raise Refused(400, "The body of your request is no JSON object.")
        return endpoint.admit(request.headers, body, exchange.body)

    def _step(self, admitted: Admitted) -> Answer | Failure:
        try:
            return self.script(admitted.request)
        except ScriptEnded as ended:
            # A client tries a 400 only once, so the fault shows at once.
            raise Refused(400, f"The script of the fake provider has ended: {ended}") from ended

    def _error(self, endpoint: Endpoint, exchange: Exchange, refused: Refused) -> Response:
        exchange.status = refused.status
        return JSONResponse(endpoint.error(refused), refused.status, refused.headers)

    async def _faulty(self, _request: HttpRequest, error: Exception) -> Response:
        if not isinstance(error, ConnectionBroken):
            self.faults.append(error)
        return JSONResponse({"error": {"message": f"the fake provider failed: {error!r}"}}, 500)


def _failure_of(step: Answer | Failure, stream: bool) -> Failure | None:
    if isinstance(step, Failure):
        return step
    if stream:  # an error event says it
        return None
    return next((part for part in step.parts if isinstance(part, Failure)), None)


def _whole(admitted: Admitted, answer: Answer) -> Iterator[Frame]:
    for part in answer.parts:
        if isinstance(part, Silence | BrokenOff):
            yield part
    yield admitted.whole(answer)


async def _stream(frames: Iterator[Frame]) -> AsyncIterator[bytes]:
    for frame in frames:
        match frame:
            case str():
                yield frame.encode()
            case Silence():
                await frame.last()
            case BrokenOff():
                raise ConnectionBroken


@contextmanager
def serving(script: Script) -> Iterator[ProviderServer]:
    """The fakes on a free port of 127.0.0.1, until the block ends.

    Raises what the script or a fake raised itself, other than a refusal.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        # Connections wait in the backlog until the thread takes them: nothing to wait for here.
        listener.listen()
        server = ProviderServer(script, f"http://127.0.0.1:{listener.getsockname()[1]}")
        http = uvicorn.Server(
            uvicorn.Config(
                server.app(),
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="critical",
                timeout_graceful_shutdown=1,
            )
        )
        thread = threading.Thread(target=http.run, args=([listener],), name="fake providers")
        thread.start()
        try:
            yield server
        finally:
            http.should_exit = True
            thread.join(timeout=10)
        assert not thread.is_alive(), "the fake providers did not stop"
    if server.faults:
        raise server.faults[0]
