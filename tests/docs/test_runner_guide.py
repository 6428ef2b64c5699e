"""The runner of docs/runners.md, as it stands there, behind a real broker."""

from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, blocks
from tests.e2e.pair import QUICK, Service
from turngate.v1.interaction_pb2 import Interaction
from turngate_client import SessionView, TurngateClient

SECONDS = 20.0


async def test_the_runner_of_the_guide_asks_parks_and_goes_on(tmp_path: Path) -> None:
    [block] = [b for b in blocks(ROOT / "docs" / "runners.md") if b.info == "python runner"]
    names: dict[str, Any] = {"__name__": "asking_runner"}
    exec(compile(block.body, block.place, "exec", dont_inherit=True), names)
    socket = f"unix:{tmp_path / 'runner.sock'}"
    server = await names["serve"](socket)
    store = f"--store=sqlite:{tmp_path / 'sessions.db'}"
    flags = [store, f"--runner={socket}", "--default-agent=asking", *QUICK]
    broker = Service("broker", tmp_path, flags)
    try:
        await broker.restart()
        async with TurngateClient(broker.address) as client:
            session = await client.create_session("trip")
            await session.send("hello")
            form = await session.until(open_question, SECONDS, "the form is open")
            assert form.render_hint.kind == "elicitation"
            settled = await session.settle_json(
                form, '{"action":"accept","content":{"city":"Visby"}}'
            )

            def thanked(view: SessionView) -> str | None:
                text = view.text(settled.run_id)
                return text if text.startswith("Thank you") else None

            text = await session.until(thanked, SECONDS, "the runner thanks for the answer")
            assert text == 'Thank you for {"action":"accept","content":{"city":"Visby"}}.'
    finally:
        broker.kill()
        await server.stop(None)


def open_question(view: SessionView) -> Interaction | None:
    return next(iter(view.open_interactions()), None)
