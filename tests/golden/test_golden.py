"""Logs of each released schema are readable for ever: they fold to what they folded to then."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_service.encoding import decode_event, encode_event
from broker_service.storage.port import EntryKind
from tests.golden import coverage
from tests.golden.conversations import ALL
from tests.golden.folded import folded
from tests.golden.logs import read, sets
from tests.unit.broker.conversation import fold_log
from tests.unit.broker.invariants import check
from turngate.v1 import event_pb2
from turngate_client.folding import fold

LOGS = [path for folder in sets() for path in sorted(folder.glob("*.log"))]
every_log = pytest.mark.parametrize(
    "path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}"
)


@every_log
def test_a_golden_log_folds_to_what_it_did_when_it_was_made(path: Path) -> None:
    """The broker's fold: session, tree, questions, queue, grants, transcripts."""
    events = read(path).events()
    assert folded(fold_log(events), events) == path.with_suffix(".txt").read_text()


@every_log
def test_a_golden_log_still_keeps_the_rules(path: Path) -> None:
    """Its state is one that this broker could have come to, and goes on from."""
    events = read(path).events()
    check(fold_log(events), events, new=len(events))


@every_log
def test_what_is_read_from_a_golden_log_is_written_as_the_same_bytes(path: Path) -> None:
    """An export, or a copy, of an old session loses nothing. (Fields of a later schema are left out
    in reading; what is stored is never written anew.)
    """
    for kind, data in read(path).entries:
        if kind is EntryKind.EVENT:
            assert encode_event(decode_event(data)) == data


@every_log
def test_a_client_folds_a_golden_log_to_the_same_tree(path: Path) -> None:
    """Deltas included: what they came to is what the complete messages say (W3)."""
    log = read(path)
    state, view = fold_log(log.events()), fold(log.messages())
    if state.deleted:
        assert view.deleted
        assert not view.node_ids, "its content is gone"
        return
    assert view.node_ids == state.nodes
    assert view.selected_node_id == state.selected
    for run in state.runs.values():
        shown = view.runs[run.id].run
        assert shown.superseded_by_run_id == run.superseded_by
        assert shown.state == run.state.value
    assert [held.message.id for held in view.held_messages] == [h.message.id for h in state.held]
    for interaction in state.interactions.values():
        assert interaction.state is not None
        assert view.interactions[interaction.id].state == interaction.state.value


def test_the_newest_golden_set_has_everything_that_a_broker_writes() -> None:
    """A field, a kind of event or a value that was added needs a new set (CONTRIBUTING)."""
    newest = sets()[-1]
    logs = [read(path) for path in newest.glob("*.log")]
    covered = coverage.of_messages(
        event_pb2.SessionEvent.FromString(data) for log in logs for _, data in log.entries
    )
    missing = coverage.of_the_contract() - covered - set(coverage.NEVER_STORED)
    assert not missing, f"golden/{newest.name} has no {sorted(missing)}"
    assert not covered & set(coverage.NEVER_STORED), "what is stored is on the list of the others"


def test_a_golden_set_has_a_log_for_each_conversation() -> None:
    newest = {path.stem for path in sets()[-1].glob("*.log")}
    assert newest == set(ALL)
