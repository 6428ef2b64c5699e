"""The server itself: raw requests, scripts of several conversations, the recording."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from tests.providers.conftest import DEADLINE
from tests.providers.script import Request, ToolCall, answer, by_conversation, in_turn
from tests.providers.server import ProviderServer, serving

BODY = {"model": "claude-haiku-4-5", "max_tokens": 1, "messages": []}


def post(
    server: ProviderServer, path: str, body: str, headers: Mapping[str, str]
) -> tuple[int, dict[str, Any]]:
    """Status and JSON of an answer to a request that no client library would send."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=DEADLINE)
    connection.request("POST", path, body, dict(headers))
    response = connection.getresponse()
    answered = response.status, json.loads(response.read())
    connection.close()
    return answered


def test_anthropic_needs_a_key_and_a_version(server: ProviderServer) -> None:
    status, body = post(server, "/v1/messages", json.dumps(BODY), {})
    assert (status, body["error"]["type"]) == (401, "authentication_error")
    assert body["error"]["message"] == "x-api-key header is required"
    headers = {"x-api-key": server.api_key}
    status, body = post(server, "/v1/messages", json.dumps(BODY), headers)
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert body["error"]["message"] == "anthropic-version: header is required"
    assert body["type"] == "error"
    assert body["request_id"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_openai_needs_a_key(server: ProviderServer, path: str) -> None:
    status, body = post(server, path, "{}", {})
    assert status == 401
    assert body["error"]["type"] == "invalid_request_error"
    assert body["error"]["message"].startswith("You didn't provide an API key.")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_body_that_is_no_json_object_is_refused(server: ProviderServer, text: str) -> None:
    status, body = post(server, "/v1/responses", text, {})
    assert (status, "body of your request" in body["error"]["message"]) == (400, True)


def test_several_conversations_have_their_own_steps(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = by_conversation({"Bern": [answer("sunny")], "Basel": [answer("rainy")]})

    def ask(prompt: str) -> str:
        return openai_client.responses.create(model="gpt-5", input=prompt).output_text

    assert [ask("Basel?"), ask("Bern?")] == ["rainy", "sunny"]
    for prompt, message in (("Bern?", "no step is left"), ("Rome?", "no conversation matches")):
        with pytest.raises(openai.BadRequestError, match=message):
            ask(prompt)


def test_what_a_script_raises_comes_out_where_the_server_ends() -> None:
    def script(request: Request) -> Any:
        raise AssertionError(f"unexpected: {request.prompt}")

    def ask() -> None:
        with (
            serving(script) as server,
            openai.OpenAI(
                base_url=server.openai_url, api_key=server.api_key, max_retries=0
            ) as client,
            pytest.raises(openai.InternalServerError),
        ):
            client.responses.create(model="gpt-5", input="Hi")

    with pytest.raises(AssertionError, match="unexpected: Hi"):
        ask()


GOLDEN = """\
--- # 1: openai_chat, 200
messages:
- role: user
  content: |-
    Two lines,
    please.
model: gpt-4.1
temperature: 0.50
--- # 2: openai_chat, 400
# refused: Invalid parameter: 'tool_call_id' of 'call_other' not found in 'tool_calls' of previous \
message.
model: gpt-4.1
messages:
- role: user
  content: Hi
- role: assistant
  tool_calls:
  - id: <call 1>
    type: function
    function:
      name: weather
      arguments: '{"at": 1.50}'
- role: tool
  tool_call_id: call_other
  content: of <call 1>, at <time 1>
"""


def test_a_recording_reads_the_same_each_time(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    """Ids and times have names, numbers stay as written, refusals stand beside the request."""
    server.script = in_turn(answer(ToolCall("weather", '{"at": 1.50}')))
    headers = {"Authorization": f"Bearer {server.api_key}"}
    first = (
        '{"messages": [{"role": "user", "content": "Two lines,\\nplease."}], "model": "gpt-4.1",'
        ' "temperature": 0.50}'
    )
    _, completion = post(server, "/v1/chat/completions", first, headers)
    [call] = completion["choices"][0]["message"]["tool_calls"]
    messages: list[Any] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "call_other",
            "content": f"of {call['id']}, at 2026-01-02T03:04:05Z",
        },
    ]
    with pytest.raises(openai.BadRequestError):
        openai_client.chat.completions.create(model="gpt-4.1", messages=messages)
    assert server.recording() == GOLDEN
