"""Client tools that an agent declares: what the runner tells the broker about them (D1, R4)."""

from __future__ import annotations

from tests.e2e.runner.broker_side import Run, Serve, user
from turngate.v1 import interaction_pb2, message_pb2, runner_pb2

SCRIPT = """
agents:
  a:
    tools:
      choose:
        executor: client
        declared: true
        kind: chooser
        params: {many: false}
        input_schema: {type: object, properties: {of: {type: string}}, required: [of]}
        output_schema: {type: object, required: [file]}
        expires_after: 1.5s
        on_expiry: cancel_run
        conflict_policy: first_wins
      scan: {executor: client}
    turns:
      - when: {text: wrong}
        steps:
          - parts: [{call: choose, id: c}]
          - parts: [{text: "${outcomes.c}"}]
      - steps: [{parts: [{call: choose, arguments: {of: photos}}, {call: scan}]}]
"""


async def test_D1_a_declaration_comes_with_the_hint_and_only_of_declared_tools(
    serve: Serve, run: Run
) -> None:
    heard = await run(await serve(SCRIPT), [user("go")])
    assert heard.kinds[-3:] == ["render_hint", "render_hint", "parked"]
    choose, scan = heard.all("render_hint")
    assert (choose.hint.kind, choose.hint.params_json) == ("chooser", '{"many":false}')
    declared = choose.declaration
    assert declared.output_schema_json == '{"type":"object","required":["file"]}'
    assert declared.expires_after.ToMilliseconds() == 1500
    assert declared.on_expiry == interaction_pb2.EXPIRY_POLICY_CANCEL_RUN
    assert declared.conflict_policy == interaction_pb2.CONFLICT_POLICY_FIRST_WINS
    assert not declared.name, "call and hint have the rest"
    assert scan.hint.kind == "scan"
    assert not scan.HasField("declaration")


async def test_R4_arguments_of_a_declared_tool_are_checked_against_its_schema(
    serve: Serve, run: Run
) -> None:
    """What does not fit goes back to the model; nothing parks."""
    heard = await run(await serve(SCRIPT), [user("wrong")])
    (refused,) = heard.all("tool_result")
    assert refused.result.kind == message_pb2.RESULT_KIND_CALL_REFUSED
    assert "do not fit its schema" in refused.result.error_text
    assert heard.kinds[-1] == "completed"


async def test_declared_tools_are_described(serve: Serve) -> None:
    described = await (await serve(SCRIPT)).DescribeAgents(runner_pb2.DescribeAgentsRequest())
    choose, scan = described.agents[0].tools
    assert choose.executor == message_pb2.TOOL_EXECUTOR_CLIENT
    assert '"required":["of"]' in choose.input_schema_json
    assert choose.declaration.expires_after.ToMilliseconds() == 1500
    assert not scan.HasField("declaration")
