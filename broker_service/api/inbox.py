"""The inbox: everything that waits, across the sessions that the caller may see (I5)."""

from __future__ import annotations

from broker_service.api import pages
from broker_service.api.reads import interaction_proto
from broker_service.sessions import Sessions
from broker_service.storage.port import SessionFilter, SessionKey
from broker_service.watch.inbox import matches, may_match
from turngate.v1 import broker_pb2, interaction_pb2
from turngate_core.errors import Reason, Refusal
from turngate_serving.caller import Caller

_KIND = "interactions"


async def list_interactions(
    sessions: Sessions,
    caller: Caller,
    request: broker_pb2.ListInteractionsRequest,
    max_page: int,
) -> broker_pb2.ListInteractionsResponse:
    """A page of open interactions, oldest first, that fit the filter."""
    asked = request.filter
    place = pages.place_of(_KIND, request.page_token, 2)
    after = (pages.number(place[0]), place[1]) if place else None
    size = pages.page_size(request.page_size, max_page)
    where = SessionFilter(caller.tenant_id, labels=tuple(sorted(asked.labels.items())))
    response = broker_pb2.ListInteractionsResponse()
    length = 0
    while True:
        listing = await sessions.store.list_interactions(where, after, size)
        for row in listing.rows:
            found = interaction_pb2.Interaction.FromString(row)
            if may_match(asked, found):
                shown = await _as_of_now(sessions, caller, found)
                if shown is None or not matches(asked, shown):
                    continue
                length += shown.ByteSize()
                full = len(response.interactions) == size or length > pages.PAGE_BYTES
                if response.interactions and full:
                    last = response.interactions[-1]
                    millis = last.create_time.ToMilliseconds()
                    response.next_page_token = pages.token(_KIND, millis, last.id)
                    return response
                response.interactions.append(shown)
        after = listing.next_after
        if after is None:
            return response


async def _as_of_now(
    sessions: Sessions, caller: Caller, row: interaction_pb2.Interaction
) -> interaction_pb2.Interaction | None:
    """With the runs that wait for it, and whether its branch is selected. None: it was closed, or
    its session deleted, since the row was read.
    """
    try:
        async with sessions.reading(SessionKey(caller.tenant_id, row.session_id)) as state:
            if row.id not in state.open_interactions:
                return None
            return interaction_proto(state, state.interactions[row.id])
    except Refusal as refusal:
        if refusal.reason not in (Reason.SESSION_NOT_FOUND, Reason.SESSION_DELETED):
            raise
        return None
