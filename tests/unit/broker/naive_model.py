"""The rules of the broker once more, naively: lists and loops, no events, no indexes.

Written from the rules alone; `test_core_machine.py` compares it with the core after each command.
What a runner was granted and reported, and which calls became questions, it is told. `names` are
the ids that the core minted for runs, in order: the model mints none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FINAL, STOPPED = ("COMPLETED", "FAILED", "CANCELLED"), ("CANCELLING", "CANCELLED")
MAX_FORKS, LOST_IN_A_ROW, UNCLAIMED_AFTER = 3, 5, 600_000


class Refused(Exception):
    """By this reason; nothing has changed."""


@dataclass(eq=False)
class Call:
    id: str
    tool: str
    starter: str = ""
    idempotent: bool = False


@dataclass(eq=False)
class Question:
    id: str
    call: Call
    run: str
    is_approval: bool
    expires: int | None = None
    policy: str = ""
    unclaimed: int | None = None  # when nobody is waited for any more; None: a declared tool
    state: str = "OPEN"
    answers: list[tuple[str, str, str]] = field(default_factory=list)  # by whom, what, its run


@dataclass(eq=False)
class Run:
    id: str
    prompt: str
    state: str = "PENDING"
    origin: str = ""
    successor: str = ""
    retries: str = ""
    fresh: bool = False  # a copy that no runner has had
    lost: int = 0
    waits: list[Question] = field(default_factory=list)
    step: list[Call] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    at_fork: dict[str, str] = field(default_factory=dict)
    not_handled: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Held:
    message: str
    branch: str
    named: bool
    interrupts: bool


class Model:
    def __init__(self, first_wins: set[str]) -> None:
        self.first_wins = first_wins
        self.parents: dict[str, str] = {}  # of all nodes, oldest first
        self.runs: dict[str, Run] = {}
        self.questions: dict[str, Question] = {}
        self.queue: list[Held] = []
        self.selected, self.paused, self.failures = "", False, 0
        self.names: list[str] = []

    # --- the tree ---

    def path(self, node: str) -> list[str]:
        return [*self.path(self.parents[node]), node] if node else []

    def chain(self, run: Run) -> list[Run]:
        return [run, *(self.chain(self.runs[run.successor]) if run.successor else [])]

    def follow(self, node: str) -> str:
        return self.chain(self.runs[node])[-1].id if node in self.runs else node

    def origins(self, run: str) -> list[Run]:
        return [self.runs[run], *self.origins(self.runs[run].origin)] if run else []

    def end_of(self, node: str) -> str:
        for name in (node, self.follow(node)):
            if name in self.path(self.selected):
                return self.selected
        below = [n for n in self.parents if name in self.path(n) and self.follow(n) == n]
        return [n for n in below if n not in (self.parents[other] for other in below)][-1]

    def live(self) -> list[Run]:
        return [r for r in self.runs.values() if r.state not in FINAL and not r.successor]

    def busy(self, node: str) -> bool:
        return any(run.id == node for run in self.live())

    def waiting(self, question: Question) -> list[Run]:
        return [run for run in self.live() if question in run.waits]

    def add(self, run: Run, *, select: bool) -> Run:
        self.runs[run.id], self.parents[run.id] = run, run.prompt
        self.selected = run.id if select else self.selected
        return run

    def copy(self, origin: Run, results: dict[str, str], without: str = "") -> Run:
        copied = {c.id: results[c.id] for c in origin.step if c.id in results and c.id != without}
        tools = {call.tool for call in origin.step if copied.get(call.id) == "NOT_HANDLED"}
        run = Run(self.names.pop(0), origin.prompt, origin=origin.id, fresh=True, results=copied)
        run.step, run.not_handled = origin.step, origin.not_handled | tools
        return run

    # --- the queue (G1, G2, G4) ---

    def send(self, message: str, branch: str, on_busy: str) -> str:
        tip, interrupts = self.end_of(branch or self.selected), on_busy == "INTERRUPT"
        if interrupts and self.busy(tip):
            self.stop(self.runs[tip])
        ahead = [h for h in self.queue if self.end_of(h.branch) == tip]
        waits = self.busy(tip) or any(h.interrupts or not interrupts for h in ahead)
        if waits and on_busy == "REJECT":
            raise Refused("SESSION_BUSY")
        self.resume_queue()
        if not waits:
            return self.enter(message, tip, select=tip == self.selected)
        place = sum(h.interrupts for h in self.queue) if interrupts else len(self.queue)
        named = bool(branch) and tip != self.selected
        self.queue.insert(place, Held(message, tip, named, interrupts))
        return ""

    def edit(self, prompt: str, message: str, keep_running: bool, on_busy: str) -> str:
        self.leave(keep_running=keep_running, stop_parked=on_busy == "INTERRUPT")
        self.resume_queue()
        return self.enter(message, self.parents[prompt], select=True)

    def enter(self, message: str, parent: str, *, select: bool) -> str:
        self.parents[message] = parent
        return self.add(Run(self.names.pop(0), message), select=select).id

    def remove(self, message: str) -> None:
        self.queue = [held for held in self.queue if held.message != message]

    def resume_queue(self) -> None:
        self.paused, self.failures = False, 0

    def release(self) -> None:
        self.paused = self.paused or (self.queue != [] and self.failures >= 2)
        before: list[str] = []
        for held in list(self.queue):
            held.branch = tip = self.end_of(held.branch)
            seen = held.named or tip == self.selected
            if self.paused or not seen or tip in before or self.busy(tip):
                before.append(tip)
            else:
                self.queue.remove(held)
                self.enter(held.message, tip, select=tip == self.selected)

    # --- stop, regenerate, retry, select (C1 to C3, R6) ---

    def stop(self, run: Run) -> None:
        if run.state in ("RUNNING", "CANCELLING"):
            run.state = "CANCELLING"
            return
        self.outcomes_unknown(run)
        run.state, waits, run.waits = "CANCELLED", run.waits, []
        for question in waits:
            if question.state == "OPEN" and not self.waiting(question):
                question.state = "CANCELLED"

    def cancel(self, name: str, keep: bool) -> str:
        run = self.runs[self.follow(name)]
        if run.state in ("COMPLETED", "FAILED"):
            raise Refused("RUN_STATE")
        if run.state != "CANCELLED":
            self.paused = self.paused or keep
            self.stop(run)
        return run.id

    def leave(self, *, keep_running: bool, stop_parked: bool) -> None:
        for run in self.live():
            stops = stop_parked if run.state == "PARKED" else not keep_running
            if run.id == self.selected and stops:
                self.stop(run)

    def regenerate(self, name: str, keep_running: bool) -> str:
        self.leave(keep_running=keep_running, stop_parked=False)
        prompt = self.runs[self.follow(name)].prompt
        return self.add(Run(self.names.pop(0), prompt), select=True).id

    def retry(self, name: str) -> str:
        run = self.failed_or_last(self.runs[name])
        while retries := [other for other in self.runs.values() if other.retries == run.id]:
            again = self.failed_or_last(retries[-1])
            if again.state in STOPPED:
                break
            if again.state != "FAILED":
                return again.id
            run = again
        if run.state != "FAILED":
            raise Refused("RUN_STATE")
        place = self.follow(run.id)
        new = self.copy(run, run.results)
        new.retries = run.id
        if run.id in self.parents.values() or place in self.parents.values():
            return self.add(new, select=False).id
        run.successor = new.id
        if self.paused:
            self.resume_queue()
        for held in self.queue:
            held.branch = new.id if held.branch == place else held.branch
        return self.add(new, select=self.selected in (run.id, place)).id

    def failed_or_last(self, run: Run) -> Run:
        chain = self.chain(run)
        return next((r for r in chain if r.state == "FAILED"), chain[-1])

    # --- questions (F2 to F8, A2, C4, D1, I4) ---

    def addressed(self, runs: list[Run], name: str) -> Run:
        named = self.runs.get(self.follow(name))
        if named in runs:
            return next(run for run in runs if run is named)
        if named is not None and named not in self.live():
            raise Refused("RUN_CANCELLED")
        return next((run for run in runs if run.id in self.path(self.selected)), runs[0])

    def refuse_closed(self, question: Question) -> None:
        if question.state in ("EXPIRED", "CANCELLED", "NOT_HANDLED"):
            raise Refused(f"INTERACTION_{question.state}")

    def settle(self, question: Question, name: str, by: str, answer: str) -> str:
        self.refuse_closed(question)
        for who, what, run_id in question.answers:
            if (who, what) == (by, answer):
                return run_id
        waiting = self.waiting(question)
        if question.answers:
            run = self.second_answer(question, name)
        else:
            run = at = self.addressed(waiting, name)
            self.mark_closed(question, "ANSWERED")
            if not at.fresh:
                run = self.copy(at, at.results)
                run.state, run.waits, at.waits, at.successor = "PARKED", at.waits, [], run.id
                self.add(run, select=self.selected == at.id)
        question.answers.append((by, answer, run.id))
        for other in {run, *waiting} & set(self.live()):
            other.results.setdefault(question.call.id, "CLIENT")
        self.resume([run, *waiting])
        return run.id

    def second_answer(self, question: Question, name: str) -> Run:
        first = at = self.runs[question.answers[0][2]]
        origin = self.runs[question.run]
        if name == origin.id:
            at = self.runs[origin.successor]
        at = next((run for run in self.origins(name) if run.origin == origin.id), at)
        for run in (*self.chain(first), *self.chain(at), self.runs.get(name, at)):
            if run.state in STOPPED:
                raise Refused("RUN_CANCELLED")
        goes_on = self.follow(first.id) in self.parents.values()
        too_many = len(question.answers) >= MAX_FORKS
        if goes_on or too_many or question.call.tool in self.first_wins:
            raise Refused("ALREADY_SETTLED")
        run = self.copy(origin, at.results if at.fresh else at.at_fork, question.call.id)
        run.state, run.waits = "PARKED", list(at.waits) if at.fresh else []
        return self.add(run, select=False)

    def decide(self, question: Question, name: str, approve: bool) -> None:
        self.refuse_closed(question)
        state, call = "APPROVED" if approve else "DENIED", question.call
        if question.state == state:
            return
        runs = [run for run in self.live() if run.state == "PARKED" and call in run.step]
        if question.state != "OPEN" and (approve or call.starter or not runs):
            raise Refused("ALREADY_DECIDED")
        self.addressed(runs, name)
        self.mark_closed(question, state)
        for run in runs:
            run.results |= {} if approve else {call.id: "DENIED"}
        self.resume(runs)

    def cancel_question(self, question: Question, name: str) -> None:
        if question.state != "CANCELLED":
            self.refuse_closed(question)
            if question.state != "OPEN":
                raise Refused("ALREADY_DECIDED" if question.is_approval else "ALREADY_SETTLED")
            self.addressed(self.waiting(question), name)
            self.close(question, "CANCELLED", "CANCELLED_BY_USER")

    def unhandled(self, question: Question, name: str) -> None:
        if question.state == "OPEN":
            run = self.addressed(self.waiting(question), name)
            assert run in self.waiting(question)
            self.degrade(question)

    def degrade(self, question: Question) -> None:
        waiting, tool = self.waiting(question), question.call.tool
        if question.unclaimed is None or tool in waiting[0].not_handled:
            question.unclaimed = None
            return
        for run in waiting:
            run.not_handled.add(tool)
        self.close(question, "NOT_HANDLED", "NOT_HANDLED")

    def due(self, now: int) -> None:
        for question in [q for q in self.questions.values() if q.state == "OPEN"]:
            if question.state == "OPEN" and (question.expires or now + 1) <= now:
                self.expire(question)
            elif question.state == "OPEN" and (question.unclaimed or now + 1) <= now:
                self.degrade(question)

    def expire(self, question: Question) -> None:
        if question.policy == "CANCEL_RUN":
            waiting = self.waiting(question)
            self.mark_closed(question, "EXPIRED")
            for run in waiting:
                self.stop(run)
        else:
            self.close(question, "EXPIRED", question.policy)

    def close(self, question: Question, state: str, kind: str) -> None:
        waiting = self.waiting(question)
        self.mark_closed(question, state)
        for run in waiting:
            run.results.setdefault(question.call.id, kind)
        self.resume(waiting)

    def mark_closed(self, question: Question, state: str) -> None:
        question.state = state
        for run in self.runs.values():
            run.waits = [other for other in run.waits if other is not question]

    def resume(self, runs: list[Run]) -> None:
        for run in runs:
            if run.state == "PARKED" and run in self.live() and not run.waits:
                run.state = "PENDING"

    # --- the runner (R1 to R4, S1) ---

    def take(self, run: Run) -> None:
        if run.state == "PENDING":
            run.state = "RUNNING"
            if run.fresh:
                run.fresh, run.at_fork = False, dict(run.results)

    def wrote(self, run: Run, calls: list[Call]) -> None:
        run.step, run.results, run.lost = calls, {}, 0

    def outcomes_unknown(self, run: Run, *, idempotent_too: bool = True) -> None:
        for call in run.step:
            if call.starter == run.id and (idempotent_too or not call.idempotent):
                run.results.setdefault(call.id, "OUTCOME_UNKNOWN")

    def park(self, run: Run, asked: list[Question]) -> None:
        run.state, run.waits = "PARKED", asked
        self.questions |= {question.id: question for question in asked}
        self.resume([run])

    def finish(self, run: Run, state: str) -> None:
        self.outcomes_unknown(run)
        run.state = "CANCELLED" if run.state == "CANCELLING" else state
        self.failures = {"FAILED": self.failures + 1, "COMPLETED": 0}.get(run.state, self.failures)

    def lose(self, run: Run, *, on_purpose: bool) -> None:
        run.lost += not on_purpose
        if run.state == "CANCELLING" or (run.lost >= LOST_IN_A_ROW and not on_purpose):
            self.finish(run, "FAILED")
        else:
            self.outcomes_unknown(run, idempotent_too=False)
            run.state = "PENDING"
