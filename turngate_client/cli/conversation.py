"""The demo's conversation: whatever the agent asks is asked of the person, until all is said."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TypeAlias

from turngate.v1.broker_pb2 import SEND_OUTCOME_HELD, WatchSessionResponse
from turngate.v1.interaction_pb2 import INTERACTION_KIND_APPROVAL, Interaction
from turngate.v1.run_pb2 import (
    RUN_STATE_CANCELLED,
    RUN_STATE_COMPLETED,
    RUN_STATE_FAILED,
    RUN_STATE_PARKED,
)
from turngate_client.cli.answers import TRIES, Answers, NoAnswer
from turngate_client.cli.form_filling import fill_form
from turngate_client.cli.narration import Narrator
from turngate_client.cli.output import CommandFailed
from turngate_client.errors import TurngateError, WaitTimedOut
from turngate_client.session import SessionClient
from turngate_client.session_view import SessionView
from turngate_client.showing import widget_of
from turngate_core import registry
from turngate_core.form_fields import Form
from turngate_core.forms import parse_form_text
from turngate_core.json_text import JsonValue, dump

# While the agent is at work something comes all the time; people are never waited for here.
EVENT_SECONDS = 60.0

# What to answer a form with by hand, if nobody filled the demo's form in.
SAMPLE_ANSWER = '{"action":"accept","content":{"city":"Visby","nights":3}}'

Frames: TypeAlias = AsyncIterator[WatchSessionResponse]

_FINAL = (RUN_STATE_COMPLETED, RUN_STATE_FAILED, RUN_STATE_CANCELLED)


class Conversation:
    """One session from the first message to the end of all that it starts.

    `second_text` is sent while the first question is open. `answer_json`: the accepted form.
    """

    def __init__(self, session: SessionClient, answers: Answers, second_text: str) -> None:
        self.answer_json = SAMPLE_ANSWER
        self._session = session
        self._answers = answers
        self._second_text = second_text
        self._narrator = Narrator()
        self._answered: set[str] = set()

    @property
    def view(self) -> SessionView:
        """The session so far."""
        return self._narrator.view

    async def hold(self, text: str) -> None:
        """Send the message and go on until nothing runs, is asked or is held.

        Raises TurngateError, WaitTimedOut, and CommandFailed for a run that failed.
        """
        async with (
            self._session.watch() as watch,
            contextlib.aclosing(watch.frames()) as frames,
        ):
            await self._session.send(text)
            while not self._is_over():
                await self._next(frames)
                await self._answer_questions(frames)
        branch = [run_id for run_id in self.view.branch() if run_id in self.view.runs]
        for run_id in branch:
            if self.view.runs[run_id].run.state == RUN_STATE_FAILED:
                raise CommandFailed(f"run {run_id} has failed")

    def _is_over(self) -> bool:
        selected = self.view.runs.get(self.view.selected_node_id)
        return (
            selected is not None
            and selected.run.state in _FINAL
            and not self.view.held_messages
            and not self._second_text
        )

    async def _next(self, frames: Frames) -> None:
        """Tell what comes next: a whole frame, so that what happened together is told together."""
        try:
            async with asyncio.timeout(EVENT_SECONDS):
                frame = await anext(frames)
        except TimeoutError:
            state = self.view.describe()
            raise WaitTimedOut(
                f"nothing came for {EVENT_SECONDS:g} s; last state: {state}"
            ) from None
        except StopAsyncIteration:
            raise CommandFailed("the session was deleted meanwhile") from None
        for event in frame.events:
            self._narrator.tell(event)

    async def _answer_questions(self, frames: Frames) -> None:
        selected = self.view.runs.get(self.view.selected_node_id)
        if selected is None:
            return
        if selected.run.state == RUN_STATE_PARKED:
            for interaction in self.view.open_interactions(selected.run.id):
                if interaction.id not in self._answered:  # its event may still be on the way
                    self._answered.add(interaction.id)
                    await self._send_second_text(frames)
                    await self._answer(interaction)
        elif selected.run.state in _FINAL:
            self._second_text = ""  # nothing was asked, so there was nothing to show with it

    async def _send_second_text(self, frames: Frames) -> None:
        """While a question is open, a message is held; nothing runs (G1)."""
        text, self._second_text = self._second_text, ""
        if not text:
            return
        self._narrator.say("\nMeanwhile another message is sent:")
        sent = await self._session.send(text)
        while sent.outcome == SEND_OUTCOME_HELD and sent.message_id not in self.view.held_by_id:
            await self._next(frames)

    async def _answer(self, interaction: Interaction) -> None:
        if interaction.kind == INTERACTION_KIND_APPROVAL:
            await self._decide(interaction)
            return
        form = parse_form_text(interaction.arguments_json)
        if self._widget(interaction) == registry.FORM and isinstance(form, Form):
            await self._fill(interaction, form)
        else:
            self._narrator.say("  this client has no widget for it and says so (D1)")
            await self._session.report_unhandled(interaction)

    def _widget(self, interaction: Interaction) -> str | None:
        """What the registry chooses for the call, by its hint first (H3)."""
        for call in self.view.calls(self.view.selected_node_id):
            if call.call.call_id == interaction.call_id:
                return widget_of(self.view, call)
        return None

    async def _fill(self, interaction: Interaction, form: Form) -> None:
        """Field by field. What the broker refuses is shown, and asked for again (F1)."""
        self._narrator.say(f"\n{form.message}", "bold")
        if form.required:
            self._narrator.say("  an answer without the required fields is refused by the broker:")
            await self._settle(interaction, {"action": "accept", "content": {}})
        answer = await fill_form(form, self._answers)
        for _ in range(TRIES):
            refused = await self._settle(interaction, answer)
            if not refused:
                return
            content = answer.get("content")
            kept = content if isinstance(content, dict) else {}
            names = {
                field.name
                for field in form.fields
                if any(path.endswith(f".{field.name}") for path in refused)
            }
            answer = await fill_form(form, self._answers, fields=names, content=kept)
        raise CommandFailed(f"the broker refused {TRIES} answers in a row")

    async def _settle(self, interaction: Interaction, answer: dict[str, JsonValue]) -> list[str]:
        """The fields that were refused; none if the answer was taken."""
        text = dump(answer)
        try:
            settled = await self._session.settle_json(interaction, text)
        except TurngateError as error:
            if error.reason != "INVALID_ANSWER" or not error.violations:
                raise
            for violation in error.violations:
                line = f"  {error.reason} {violation.field}: {violation.description}"
                self._narrator.say(line, "yellow")
            return [violation.field for violation in error.violations]
        if answer["action"] == "accept":
            self.answer_json = text
        self._narrator.say(f"\nanswer: {text}", "bold")
        self._narrator.say(f"  taken; {settled.run_id} goes on with it", "cyan")
        return []

    async def _decide(self, interaction: Interaction) -> None:
        """Yes or no, and why (A2). Without an answer nothing is approved."""
        tool, arguments = interaction.tool_name, interaction.arguments_json
        self._narrator.say(f"\nMay {tool} start with {arguments}?", "bold")
        try:
            verdict = await self._answers.ask("Approve it (y/n)", _not_a_verdict)
        except NoAnswer as none:
            self._narrator.say(f"  {none}: denied", "yellow")
            await self._session.deny(interaction, reason=f"Nobody decided: {none}.")
            return
        reason = ""
        with contextlib.suppress(NoAnswer):  # the decision was made; a reason is not needed
            reason = await self._answers.ask("Reason (may be empty)", lambda _: None)
        if verdict.lower().startswith("y"):
            await self._session.approve(interaction, reason=reason)
        else:
            await self._session.deny(interaction, reason=reason)


def _not_a_verdict(text: str) -> str | None:
    return None if text.lower() in ("y", "yes", "n", "no") else "must be y or n"
