"""The rules of the broker once more, naively: lists and loops, no events, no indexes.

Written from the rules alone; the state machine compares it with the core after each command. What a
runner was granted and reported, and which calls became questions, it is told. `names` are the ids
that the core minted for runs, in order: the model mints none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FINAL, STOPPED = ("COMPLETED", "FAILED", "CANCELLED"), ("CANCELLING", "CANCELLED")
MAX_FORKS, LOST_IN_A_ROW, UNCLAIMED_AFTER = 3, 5, 600_000


class Refused(Exception):
    """By this reason; nothing has changed."""


@dataclass(eq=False)
class Question:
    id: str
    call: str
    tool: str
    run: str
    is_approval: bool
    deadlines: list[tuple[int, str]]  # what happens when, unless it is closed before
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
    step: list[str] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    at_fork: dict[str, str] = field(default_factory=dict)
    not_handled: set[str] = field(default_factory=set)


class Model:
    def __init__(self, tools: dict[str, str], first_wins: str, undeclared: str) -> None:
        self.tools = tools  # of each call
        self.first_wins, self.undeclared = first_wins, undeclared
        self.parents: dict[str, str] = {}  # of all nodes, oldest first
        self.runs: dict[str, Run] = {}
        self.questions: dict[str, Question] = {}
        self.starts: dict[str, tuple[str, bool]] = {}  # by which run; repeatable
        self.queue: list[str] = []
        self.branch_of: dict[str, str] = {}
        self.on_purpose, self.interrupting = set[str](), set[str]()  # of held messages
        self.selected, self.paused, self.failures = "", False, 0
        self.names: list[str] = []

    def path(self, node: str) -> list[str]:
        return [*self.path(self.parents[node]), node] if node else []

    def chain(self, run: Run) -> list[Run]:
        return [run, *(self.chain(self.runs[run.successor]) if run.successor else [])]

    def follow(self, node: str) -> str:
        return self.chain(self.runs[node])[-1].id if node in self.runs else node

    def origins(self, run: str) -> list[Run]:
        return [self.runs[run], *self.origins(self.runs[run].origin)] if run else []

    def end_of(self, node: str) -> str:  # G1, F8
        for name in (node, self.follow(node)):
            if name in self.path(self.selected):
                return self.selected
        below = [n for n in self.parents if name in self.path(n) and self.follow(n) == n]
        return [n for n in below if n not in (self.parents[other] for other in below)][-1]

    def live(self) -> list[Run]:
        return [r for r in self.runs.values() if r.state not in FINAL and not r.successor]

    def busy(self, node: str) -> bool:
        return node in [run.id for run in self.live()]

    def waiting(self, question: Question) -> list[Run]:
        return [run for run in self.live() if question in run.waits]

    def add(self, run: Run, *, select: bool) -> str:
        self.runs[run.id], self.parents[run.id] = run, run.prompt
        self.selected = run.id if select else self.selected
        return run.id

    def copy(self, origin: Run, results: dict[str, str], without: str = "") -> Run:  # F2, F5
        copied = {call: results[call] for call in origin.step if call in results}
        copied.pop(without, None)
        tools = {self.tools[call] for call in copied if copied[call] == "NOT_HANDLED"}
        run = Run(self.names.pop(0), origin.prompt, "PARKED", origin.id, fresh=True)
        run.step, run.results, run.not_handled = origin.step, copied, origin.not_handled | tools
        return run

    def send(self, message: str, branch: str, on_busy: str) -> str:  # G1, G4
        tip, interrupts = self.end_of(branch or self.selected), on_busy == "INTERRUPT"
        if interrupts and self.busy(tip):
            self.stop(self.runs[tip])
        ahead = {held for held in self.queue if self.end_of(self.branch_of[held]) == tip}
        waits = self.busy(tip) or (ahead & self.interrupting if interrupts else ahead)
        if waits and on_busy == "REJECT":
            raise Refused("SESSION_BUSY")
        self.resume_queue()
        if not waits:
            return self.enter(message, tip, select=tip == self.selected)
        before = [held for held in self.queue if held in self.interrupting or not interrupts]
        self.queue = [*before, message, *(held for held in self.queue if held not in before)]
        self.branch_of[message] = tip
        self.interrupting |= {message} if interrupts else set()
        self.on_purpose |= {message} if branch and tip != self.selected else set()
        return ""

    def edit(self, prompt: str, message: str, keep_running: bool, on_busy: str) -> str:  # C2
        self.leave(keep_running=keep_running, stop_parked=on_busy == "INTERRUPT")
        self.resume_queue()
        return self.enter(message, self.parents[prompt], select=True)

    def enter(self, message: str, parent: str, *, select: bool) -> str:
        self.parents[message] = parent
        return self.add(Run(self.names.pop(0), message), select=select)

    def resume_queue(self) -> None:
        self.paused, self.failures = False, 0

    def release(self) -> None:  # G2
        self.paused = self.paused or (self.queue != [] and self.failures >= 2)
        before: list[str] = []
        for held in list(self.queue):
            self.branch_of[held] = tip = self.end_of(self.branch_of[held])
            unseen = tip != self.selected and held not in self.on_purpose
            if self.paused or unseen or tip in before or self.busy(tip):
                before.append(tip)
            else:
                self.queue.remove(held)
                self.enter(held, tip, select=tip == self.selected)

    def stop(self, run: Run) -> None:  # C1
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

    def regenerate(self, name: str, keep_running: bool) -> str:  # C2
        self.leave(keep_running=keep_running, stop_parked=False)
        return self.add(Run(self.names.pop(0), self.parents[self.follow(name)]), select=True)

    def retry(self, name: str) -> str:  # R6
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
        place, new = self.follow(run.id), self.copy(run, run.results)
        new.retries, new.state = run.id, "PENDING"
        if {run.id, place} & set(self.parents.values()):
            return self.add(new, select=False)
        run.successor = new.id
        if self.paused:
            self.resume_queue()
        for held in self.queue:
            self.branch_of[held] = {place: new.id}.get(self.branch_of[held], self.branch_of[held])
        return self.add(new, select=self.selected in (run.id, place))

    def failed_or_last(self, run: Run) -> Run:
        chain = self.chain(run)
        return next((r for r in chain if r.state == "FAILED"), chain[-1])

    def addressed(self, runs: list[Run], name: str) -> Run:  # F4, F6, F8
        named = [run for run in runs if run.id == self.follow(name)]
        if name and not named and not self.busy(self.follow(name)):
            raise Refused("RUN_CANCELLED")
        return [*named, *(run for run in runs if run.id in self.path(self.selected)), *runs][0]

    def refuse_closed(self, question: Question) -> None:
        if question.state in ("EXPIRED", "CANCELLED", "NOT_HANDLED"):
            raise Refused(f"INTERACTION_{question.state}")

    def settle(self, question: Question, name: str, by: str, answer: str) -> str:  # F2, F4
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
                run.waits, at.waits, at.successor = at.waits, [], run.id
                self.add(run, select=self.selected == at.id)
        question.answers.append((by, answer, run.id))
        for other in {run, *waiting} & set(self.live()):
            other.results.setdefault(question.call, "CLIENT")
        self.resume([run, *waiting])
        return run.id

    def second_answer(self, question: Question, name: str) -> Run:  # F5, F6
        first = at = self.runs[question.answers[0][2]]
        origin = self.runs[question.run]
        if name == origin.id:
            at = self.runs[origin.successor]
        at = next((run for run in self.origins(name) if run.origin == origin.id), at)
        for run in (*self.chain(first), *self.chain(at), self.runs.get(name, at)):
            if run.state in STOPPED:
                raise Refused("RUN_CANCELLED")
        goes_on = self.follow(first.id) in self.parents.values()
        if goes_on or len(question.answers) >= MAX_FORKS or question.tool == self.first_wins:
            raise Refused("ALREADY_SETTLED")
        run = self.copy(origin, at.results if at.fresh else at.at_fork, question.call)
        run.waits = list(at.waits) if at.fresh else []
        self.add(run, select=False)
        return run

    def decide(self, question: Question, name: str, approve: bool) -> None:  # A2
        self.refuse_closed(question)
        state, call = "APPROVED" if approve else "DENIED", question.call
        if question.state != state:
            runs = [run for run in self.live() if run.state == "PARKED" and call in run.step]
            if question.state != "OPEN" and (approve or call in self.starts or not runs):
                raise Refused("ALREADY_DECIDED")
            self.addressed(runs, name)
            self.mark_closed(question, state)
            for run in runs:
                run.results |= {} if approve else {call: "DENIED"}
            self.resume(runs)

    def cancel_question(self, question: Question, name: str) -> None:  # C4
        if question.state != "CANCELLED":
            self.refuse_closed(question)
            if question.state != "OPEN":
                raise Refused("ALREADY_DECIDED" if question.is_approval else "ALREADY_SETTLED")
            self.addressed(self.waiting(question), name)
            self.close(question, "CANCELLED", "CANCELLED_BY_USER")

    def unhandled(self, question: Question, name: str) -> None:  # D1
        if question.state == "OPEN":
            self.addressed(self.waiting(question), name)
            if question.tool == self.undeclared:
                self.degrade(question)

    def degrade(self, question: Question) -> None:
        waiting = self.waiting(question)
        question.deadlines = [d for d in question.deadlines if d[1] != "UNCLAIMED"]
        if question.tool not in waiting[0].not_handled:
            for run in waiting:
                run.not_handled.add(question.tool)
            self.close(question, "NOT_HANDLED", "NOT_HANDLED")

    def due(self, now: int) -> None:  # I4
        for question in self.questions.values():
            for instant, what in question.deadlines:
                if question.state != "OPEN" or instant > now:
                    continue
                if what == "UNCLAIMED":
                    self.degrade(question)
                elif what == "CANCEL_RUN":
                    for run in self.mark_closed(question, "EXPIRED"):
                        self.stop(run)
                else:
                    self.close(question, "EXPIRED", what)

    def close(self, question: Question, state: str, kind: str) -> None:
        waiting = self.mark_closed(question, state)
        for run in waiting:
            run.results.setdefault(question.call, kind)
        self.resume(waiting)

    def mark_closed(self, question: Question, state: str) -> list[Run]:
        waiting, question.state = self.waiting(question), state
        for run in self.runs.values():
            run.waits = [other for other in run.waits if other is not question]
        return waiting

    def resume(self, runs: list[Run]) -> None:
        for run in runs:
            if run.state == "PARKED" and run in self.live() and not run.waits:
                run.state = "PENDING"

    def take(self, run: Run) -> None:  # R1
        if run.state == "PENDING":
            run.state = "RUNNING"
            if run.fresh:
                run.fresh, run.at_fork = False, dict(run.results)

    def outcomes_unknown(self, run: Run, *, repeatable_too: bool = True) -> None:  # S1
        for call in run.step:
            starter, repeatable = self.starts.get(call, ("", False))
            if starter == run.id and (repeatable_too or not repeatable):
                run.results.setdefault(call, "OUTCOME_UNKNOWN")

    def finish(self, run: Run, state: str) -> None:
        self.outcomes_unknown(run)
        run.state = "CANCELLED" if run.state == "CANCELLING" else state
        self.failures = {"FAILED": self.failures + 1, "COMPLETED": 0}.get(run.state, self.failures)

    def lose(self, run: Run, *, on_purpose: bool) -> None:  # R3, R6
        run.lost += not on_purpose
        if run.state == "CANCELLING" or (run.lost >= LOST_IN_A_ROW and not on_purpose):
            self.finish(run, "FAILED")
        else:
            self.outcomes_unknown(run, repeatable_too=False)
            run.state = "PENDING"
