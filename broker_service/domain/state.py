"""The state of a session: what its events fold to, as far as decisions need it.

Contents of finished steps are not kept: a run holds the calls and results of its current step only,
and everything else is read from the log by index when somebody asks for it. Changed by `fold.py`
alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from broker_service.domain.model import (
    ACTIVE_STATES,
    FINAL_STATES,
    ApprovalPolicy,
    ClientTool,
    ConflictPolicy,
    HeldMessage,
    Interaction,
    Part,
    QueuePause,
    RenderHint,
    Role,
    RunCause,
    RunChangeCause,
    RunFailure,
    RunState,
    Session,
    SessionConfig,
    ToolCall,
    ToolResult,
    TraceContext,
    Usage,
)
from turngate_core.canonical_arguments import canonical_key_of_text


@dataclass(slots=True)
class PromptNode:
    """A message that entered from outside: a user's, or a first message of any role."""

    id: str
    parent_id: str
    role: Role
    author: str
    digest: str
    edits_prompt_id: str = ""
    # The messages of its branch that come before it.
    messages_before: int = 0


def content_digest(parts: tuple[Part, ...]) -> str:
    """Tells equal contents of messages from others, without keeping them."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def answer_digest(output_json: str | None, error_text: str | None) -> str:
    """Tells equal answers from others (F5): JSON that differs in key order or spacing is equal."""
    content = error_text
    if output_json is not None:
        content = canonical_key_of_text(output_json, unwrap_strings=False) or output_json
    kind = "error" if output_json is None else "output"
    return hashlib.blake2b(f"{kind}:{content}".encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class CallRecord:
    """A tool call, the same over all forks (T3): who made it, and the ledger of its start (S1):
    by which run, in which attempt of it."""

    call: ToolCall
    message_id: str
    run_id: str
    started_by: str = ""
    started_in: int = 0
    idempotent: bool = False
    interaction_id: str = ""
    # What the run's agent has declared about its client tool, when it was made (R7, D1).
    declaration: ClientTool | None = None
    # What came of its start, and the run whose event holds it (S1).
    result: ToolResult | None = None
    result_run: str = ""

    @property
    def started(self) -> bool:
        return self.started_by != ""


@dataclass(slots=True)
class RunNode:
    """A run, with the frontier of its work: the step that it is in."""

    id: str
    prompt_id: str
    state: RunState
    cause: RunCause
    agent: str
    create_time: int
    update_time: int
    origin_id: str = ""
    origin_through: str = ""
    inherited: tuple[tuple[str, str], ...] = ()
    supersedes: str = ""
    superseded_by: str = ""
    # The operator's policy that it was started with; "": none (R7).
    operator_policy_id: str = ""
    attempt: int = 0
    failure: RunFailure | None = None
    # Why it is being, or was, cancelled.
    cancel_cause: RunChangeCause | None = None
    trace_context: TraceContext | None = None
    usage: Usage | None = None
    # A fork that was not handed to a runner yet: it collects answers to the calls that it waits for
    # (F4).
    collecting: bool = False
    waits: list[str] = field(default_factory=list)
    # The messages that it has, copied ones included.
    message_count: int = 0
    # The current step.
    step: int = 0
    open_message_id: str = ""
    step_message_id: str = ""
    step_calls: tuple[str, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict)
    result_runs: dict[str, str] = field(default_factory=dict)
    hints: dict[str, RenderHint] = field(default_factory=dict)
    # The runs whose results it shares, in whatever step: they hold the outcomes (F4, S1).
    lenders: frozenset[str] = frozenset()
    # What a fork had of its first step when it was handed over: second answers start from it (F5).
    fork_results: dict[str, ToolResult] = field(default_factory=dict)
    fork_result_runs: dict[str, str] = field(default_factory=dict)
    # The step in which questions went over the limit (D3).
    over_limit_step: int = 0
    # No runner could be found for a while (S2).
    unplaced: bool = False
    # Attempts lost since the last complete message (R6).
    lost_attempts: int = 0
    # The turn so far (D1, D2, D3): a run, with what it copies, is the whole reply of its turn.
    questions: int = 0
    degraded: bool = False
    not_handled_tools: frozenset[str] = frozenset()

    @property
    def live(self) -> bool:
        """Neither final nor superseded (R1)."""
        return self.state not in FINAL_STATES and not self.superseded_by

    @property
    def active(self) -> bool:
        """Pending, running or cancelling, and not superseded (R2)."""
        return self.state in ACTIVE_STATES and not self.superseded_by


@dataclass(slots=True)
class GrantRecord:
    """An approval of scope SESSION (A3). It reaches other calls once its own call was started."""

    interaction_id: str
    call_id: str
    run_id: str
    granted_by: str
    create_time: int
    revoked: bool = False


@dataclass(slots=True)
class SessionState:
    """Everything that decisions about one session need."""

    session: Session
    config: SessionConfig
    version: int = 0
    update_time: int = 0
    deleted: bool = False
    prompts: dict[str, PromptNode] = field(default_factory=dict)
    runs: dict[str, RunNode] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    # All nodes, oldest first: a parent comes before its children.
    nodes: list[str] = field(default_factory=list)
    selected: str = ""
    calls: dict[str, CallRecord] = field(default_factory=dict)
    interactions: dict[str, Interaction] = field(default_factory=dict)
    message_nodes: dict[str, str] = field(default_factory=dict)
    # In order of their creation.
    live_runs: dict[str, None] = field(default_factory=dict)
    open_interactions: dict[str, None] = field(default_factory=dict)
    held: list[HeldMessage] = field(default_factory=list)
    queue_pause: QueuePause | None = None
    failures_in_row: int = 0
    last_failed_run: str = ""
    grants: dict[str, GrantRecord] = field(default_factory=dict)
    answer_digests: dict[str, str] = field(default_factory=dict)
    # The operator's policies that runs were started with, by id (R7).
    operator_policies: dict[str, ApprovalPolicy] = field(default_factory=dict)

    def parent_of(self, node_id: str) -> str:
        """The node before this one; "" for a root."""
        run = self.runs.get(node_id)
        return run.prompt_id if run else self.prompts[node_id].parent_id

    def has_node(self, node_id: str) -> bool:
        return node_id in self.runs or node_id in self.prompts

    def path_to(self, node_id: str, limit: int | None = None) -> list[str]:
        """The branch that ends at this node, root first; at most its last `limit` nodes."""
        path: list[str] = []
        while node_id and (limit is None or len(path) < limit):
            path.append(node_id)
            node_id = self.parent_of(node_id)
        path.reverse()
        return path

    def messages_through(self, node_id: str) -> int:
        """How many messages the branch that ends at this node has."""
        run = self.runs.get(node_id)
        if run is not None:
            return self.prompts[run.prompt_id].messages_before + 1 + run.message_count
        return self.prompts[node_id].messages_before + 1

    def on_selected_branch(self, node_id: str) -> bool:
        at = self.selected
        while at:
            if at == node_id:
                return True
            at = self.parent_of(at)
        return False

    def end_of_branch(self, node_id: str) -> str:
        """The end of the branch through a node: the selected, else the newest leaf below (G1)."""
        if self.on_selected_branch(node_id):
            return self.selected
        node_id = self.successor(node_id)
        if self.on_selected_branch(node_id):
            return self.selected
        leaves: list[str] = []
        todo = [node_id]
        while todo:
            node = todo.pop()
            below = [
                child
                for child in self.children.get(node, ())
                if child not in self.runs or not self.runs[child].superseded_by
            ]
            todo += below
            if not below:
                leaves.append(node)
        return leaves[0] if len(leaves) == 1 else max(leaves, key=self.nodes.index)

    def successor(self, node_id: str) -> str:
        """The node itself, or the run that superseded it, along the chain (F8)."""
        while (run := self.runs.get(node_id)) and run.superseded_by:
            node_id = run.superseded_by
        return node_id

    def waiting_runs(self, interaction_id: str) -> list[RunNode]:
        """The live runs that wait for an interaction, oldest first (F4)."""
        live = (self.runs[run_id] for run_id in self.live_runs)
        return [run for run in live if interaction_id in run.waits]

    def origin_chain(self, run_id: str) -> list[RunNode]:
        """The run and the runs that it copies, itself first."""
        chain: list[RunNode] = []
        while run_id:
            run = self.runs[run_id]
            chain.append(run)
            run_id = run.origin_id
        return chain

    def recorded_result(self, run_id: str, call_id: str) -> ToolResult:
        """The result of a call that an event of this run holds, as far as it can still matter."""
        run = self.runs[run_id]
        record = self.calls[call_id]
        result = run.results.get(call_id) or run.fork_results.get(call_id) or record.result
        assert result is not None, "a result that is named is recorded"
        return result

    def owns_call(self, run: RunNode, call_id: str) -> bool:
        """Whether a call is one of the run's, its own or copied with its origin's messages (F7)."""
        record = self.calls.get(call_id)
        return record is not None and any(
            ancestor.id == record.run_id for ancestor in self.origin_chain(run.id)
        )

    def siblings(self, run: RunNode) -> tuple[str, ...]:
        """The runs of the same prompt that are not superseded, itself left out (F8)."""
        return tuple(
            child
            for child in self.children.get(run.prompt_id, ())
            if child != run.id and child in self.runs and not self.runs[child].superseded_by
        )

    def conflict_policy(self, *policies: ConflictPolicy | None) -> ConflictPolicy:
        """The stricter of all settings that speak about second answers (E3, F5)."""
        every = (*policies, self.config.conflict_policy)
        return (
            ConflictPolicy.FIRST_WINS if ConflictPolicy.FIRST_WINS in every else ConflictPolicy.FORK
        )
