"""One session of a broker: commands, reads and watches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from turngate.v1 import broker_pb2 as pb
from turngate.v1.message_pb2 import Message, Part
from turngate.v1.session_pb2 import HeldMessage, OnBusy, Session
from turngate_client.connection import Connection, new_request_id
from turngate_client.files import export_file
from turngate_client.following import FollowedSession
from turngate_client.interactions import InteractionCalls
from turngate_client.session_view import SessionView
from turngate_client.watching import SessionWatch

T = TypeVar("T")


class SessionClient(InteractionCalls):
    """One session. Get it from `TurngateClient.create_session` or `.session`.

    `first_run_id`: the run that the first messages started, if any. Errors of each call are named
    in broker.proto; all are TurngateError.
    """

    def __init__(self, connection: Connection, session_id: str, first_run_id: str = "") -> None:
        super().__init__(connection, session_id)
        self.first_run_id = first_run_id

    async def get(self) -> Session:
        """The session as it is now."""
        request = pb.GetSessionRequest(session_id=self.id)
        return (await self._connection.call(self._stub.GetSession, request)).session

    async def delete(self, *, request_id: str = "") -> None:
        """Delete the session: open runs are cancelled first, its content is gone."""
        request = pb.DeleteSessionRequest(
            session_id=self.id, request_id=request_id or new_request_id()
        )
        await self._connection.call(self._stub.DeleteSession, request)

    def export(self) -> AsyncIterator[bytes]:
        """The session as a file, newline-delimited JSON, in pieces cut anywhere."""
        return export_file(self._connection, self.id)

    # --- messages and the queue ---

    async def send(
        self,
        text: str = "",
        *,
        parts: Iterable[Part] = (),
        message_id: str = "",
        branch_node_id: str = "",
        edits_message_id: str = "",
        on_busy: OnBusy.ValueType = OnBusy.ON_BUSY_UNSPECIFIED,
        keep_running: bool = False,
        request_id: str = "",
    ) -> pb.SendMessageResponse:
        """Send a user message: `text`, or `parts`. It starts a run, or it is held (G1)."""
        request = pb.SendMessageRequest(
            session_id=self.id,
            text=text,
            parts=parts,
            message_id=message_id,
            branch_node_id=branch_node_id,
            edits_message_id=edits_message_id,
            on_busy=on_busy,
            keep_running=keep_running,
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.SendMessage, request)

    async def held_messages(self) -> pb.ListHeldMessagesResponse:
        """The held messages in the order in which they will enter, and the queue's pause."""
        request = pb.ListHeldMessagesRequest(session_id=self.id)
        return await self._connection.call(self._stub.ListHeldMessages, request)

    async def update_held(
        self, message_id: str, text: str = "", *, parts: Iterable[Part] = (), request_id: str = ""
    ) -> HeldMessage:
        """Replace the content of a held message of one's own (G3)."""
        request = pb.UpdateHeldMessageRequest(
            session_id=self.id,
            message_id=message_id,
            text=text,
            parts=parts,
            request_id=request_id or new_request_id(),
        )
        return (await self._connection.call(self._stub.UpdateHeldMessage, request)).held

    async def remove_held(self, message_id: str, *, request_id: str = "") -> None:
        """Remove a held message; nothing is sent by it (G3)."""
        request = pb.RemoveHeldMessageRequest(
            session_id=self.id, message_id=message_id, request_id=request_id or new_request_id()
        )
        await self._connection.call(self._stub.RemoveHeldMessage, request)

    async def resume_queue(self, *, request_id: str = "") -> str:
        """End a pause of the queue; the run of the message that entered, or ""."""
        request = pb.ResumeQueueRequest(
            session_id=self.id, request_id=request_id or new_request_id()
        )
        return (await self._connection.call(self._stub.ResumeQueue, request)).run_id

    # --- runs, tree and transcript ---

    async def run(
        self, run_id: str = "", *, message_id: str = "", interaction_id: str = ""
    ) -> pb.GetRunResponse:
        """A run and what it waits for: by its own id, a message's or an interaction's (F9)."""
        request = pb.GetRunRequest(session_id=self.id)
        if message_id:
            request.message_id = message_id
        elif interaction_id:
            request.interaction_id = interaction_id
        else:
            request.run_id = run_id
        return await self._connection.call(self._stub.GetRun, request)

    async def cancel_run(
        self,
        run_id: str,
        *,
        held: pb.HeldMessages.ValueType = pb.HELD_MESSAGES_UNSPECIFIED,
        request_id: str = "",
    ) -> pb.CancelRunResponse:
        """Stop a run (C1)."""
        request = pb.CancelRunRequest(
            session_id=self.id, run_id=run_id, held=held, request_id=request_id or new_request_id()
        )
        return await self._connection.call(self._stub.CancelRun, request)

    async def regenerate(
        self, run_id: str, *, keep_running: bool = False, request_id: str = ""
    ) -> pb.RegenerateRunResponse:
        """Open a new run beside one, named by its own id or a message's (C2)."""
        request = pb.RegenerateRunRequest(
            session_id=self.id,
            run_id=run_id,
            keep_running=keep_running,
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.RegenerateRun, request)

    async def retry(self, run_id: str, *, request_id: str = "") -> pb.RetryRunResponse:
        """Open a run beside a failed one with all that it had (R6)."""
        request = pb.RetryRunRequest(
            session_id=self.id, run_id=run_id, request_id=request_id or new_request_id()
        )
        return await self._connection.call(self._stub.RetryRun, request)

    async def tree(self, *, include_superseded: bool = False) -> list[pb.TreeNode]:
        """All nodes of the conversation tree, oldest first, a parent before its children."""
        request = pb.GetTreeRequest(session_id=self.id, include_superseded=include_superseded)
        nodes: list[pb.TreeNode] = []
        while True:
            page = await self._connection.call(self._stub.GetTree, request)
            nodes.extend(page.nodes)
            if not page.next_page_token:
                return nodes
            request.page_token = page.next_page_token

    async def transcript(self, node_id: str = "") -> list[Message]:
        """All messages of a branch, of the selected one by default; calls with their results."""
        request = pb.GetTranscriptRequest(session_id=self.id, node_id=node_id)
        messages: list[Message] = []
        while True:
            page = await self._connection.call(self._stub.GetTranscript, request)
            for message in page.messages:
                if messages and messages[-1].id == message.id:
                    # Too large for one: the same id again continues it (message.proto).
                    messages[-1].parts.extend(message.parts)
                else:
                    messages.append(message)
            if not page.next_page_token:
                return messages
            request.page_token = page.next_page_token

    async def select_branch(self, node_id: str, *, request_id: str = "") -> str:
        """Select the branch through a node, down to its newest leaf; that leaf's id (C3)."""
        request = pb.SelectBranchRequest(
            session_id=self.id, node_id=node_id, request_id=request_id or new_request_id()
        )
        return (await self._connection.call(self._stub.SelectBranch, request)).selected_node_id

    # --- watching ---

    def watch(
        self, *, after: str = "", snapshot: bool = False, without_deltas: bool = False
    ) -> SessionWatch:
        """The session's events from a cursor on (default: from the start), then live (W1).

        `snapshot`: begin with the present state instead; then read `frames()`, join the pieces
        with `SnapshotPieces`, and let `apply_snapshot` make a view of the whole.
        """
        return self._connection.watch(
            pb.WatchSessionRequest(
                session_id=self.id, after=after, snapshot=snapshot, without_deltas=without_deltas
            )
        )

    def follow(self, *, snapshot: bool = False) -> FollowedSession:
        """The session as a view that is kept up to date, in `async with`.

        `snapshot`: begin with the present state instead of the log's start: quick for a long
        session, but older messages and other branches are missing (`apply_snapshot`).
        """
        return FollowedSession(self.watch(snapshot=snapshot))

    def until(
        self, predicate: Callable[[SessionView], T | None], timeout: float, what: str
    ) -> Awaitable[T]:
        """Wait until the predicate finds something in the session's present or later state.

        See `FollowedSession.until`; this opens a watch of its own, for one wait.
        """
        return self._until(predicate, timeout, what)

    async def _until(
        self, predicate: Callable[[SessionView], T | None], seconds: float, what: str
    ) -> T:
        async with self.follow() as followed:
            return await followed.until(predicate, seconds, what)
