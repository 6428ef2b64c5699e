"""What the broker says during an attempt: what is durable, verdicts, cancel.

A caller that has closed its side without ever acknowledging anything (grpcurl) acknowledges
everything in advance; verdicts then come from `verdicts_alone` (A1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from runner_service.outbox import Outbox
from turngate.v1 import runner_pb2
from turngate_core.errors import Reason, Refusal

ToolVerdict = runner_pb2.ToolVerdict
Decide = Callable[[Sequence[runner_pb2.ProposedTool]], Sequence[ToolVerdict]]


def protocol_violation(problem: str) -> Refusal:
    """The refusal of what the protocol of `Execute` does not allow."""
    return Refusal(Reason.PROTOCOL_VIOLATION, problem, {"problem": problem})


class Acknowledgements:
    """The broker's word in one attempt.

    `verdicts` are queued as they come; `None` in the queue says that a cancel came, which
    `cancelled` shows too.
    """

    def __init__(self, outbox: Outbox, *, by_hand: bool) -> None:
        """`by_hand`: the caller may close its side instead of acknowledging. Only one that names no
        revision of the protocol is taken for that: a broker whose connection breaks looks just like
        a caller that closes its side, and nothing may start on nobody's word (A1, S1).
        """
        self.cancelled = asyncio.Event()
        self.verdicts: asyncio.Queue[ToolVerdict | None] = asyncio.Queue()
        self._outbox = outbox
        self._through = 0
        self._progress = asyncio.Event()
        self._by_hand = by_hand
        self._alone = False
        self._open_proposals: dict[str, runner_pb2.ProposedTool] = {}
        self._proposed_ids: set[str] = set()
        self._decide: Decide | None = None

    def propose(self, tools: Sequence[runner_pb2.ProposedTool], decide: Decide) -> None:
        """Note server calls that are being proposed; `decide` speaks if the caller will not."""
        self._decide = decide
        self._open_proposals = {tool.call_id: tool for tool in tools}
        self._proposed_ids.update(self._open_proposals)
        if self._alone:
            self._decide_alone()

    def receive(self, acknowledgement: runner_pb2.Acknowledgement) -> None:
        """Take an acknowledgement. Raises `Refusal` for one that makes no sense."""
        if acknowledgement.through > self._outbox.last_number:
            raise protocol_violation(
                f"acknowledged through {acknowledgement.through}, "
                f"but only {self._outbox.last_number} events were sent"
            )
        self._by_hand = False
        for verdict in acknowledgement.verdicts:
            if verdict.call_id not in self._proposed_ids:
                raise protocol_violation("a verdict on a call that was not proposed")
            self._open_proposals.pop(verdict.call_id, None)
            self.verdicts.put_nowait(verdict)
            if verdict.verdict == runner_pb2.VERDICT_CANCELLED:
                self.cancel()
        if acknowledgement.through > self._through:
            self._through = acknowledgement.through
            self._progress.set()

    def cancel(self) -> None:
        """The run is being cancelled."""
        if not self.cancelled.is_set():
            self.cancelled.set()
            self.verdicts.put_nowait(None)

    def half_closed(self) -> None:
        """The caller says nothing more. Raises `Refusal` unless it is one by hand.

        Not after the end of the attempt: then nothing is left to say.
        """
        if self._outbox.ended and self._through >= self._outbox.last_number:
            return
        if not self._by_hand:
            raise protocol_violation("the stream was closed before the attempt had ended")
        self._alone = True
        self._progress.set()
        self._decide_alone()

    async def durable(self, number: int) -> None:
        """Wait until the broker has stored all events up to this number."""
        while not self._alone and self._through < number:
            self._progress.clear()
            await self._progress.wait()

    def _decide_alone(self) -> None:
        if self._decide is None or not self._open_proposals:
            return
        tools = list(self._open_proposals.values())
        self._open_proposals = {}
        for verdict in self._decide(tools):
            self.verdicts.put_nowait(verdict)
