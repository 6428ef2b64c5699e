"""The inbox: everything that waits, across the sessions that the caller may see (I5)."""

from __future__ import annotations

from broker_service.api import pages
from broker_service.api.reads import interaction_proto
from broker_service.domain.model import Interaction
from broker_service.encoding import from_proto
from broker_service.sessions import Sessions
from broker_service.storage.port import SessionFilter, SessionKey
from turngate.v1 import broker_pb2, interaction_pb2
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
            if _matches(asked, found):
                shown = await _as_of_now(sessions, caller, found)
                if asked.only_selected_branch and not shown.on_selected_branch:
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


def _matches(asked: broker_pb2.InteractionFilter, found: interaction_pb2.Interaction) -> bool:
    return (
        asked.session_id in ("", found.session_id)
        and asked.kind in (interaction_pb2.INTERACTION_KIND_UNSPECIFIED, found.kind)
        and asked.tool_name in ("", found.tool_name)
        and asked.opened_for in ("", found.opened_for)
    )


async def _as_of_now(
    sessions: Sessions, caller: Caller, found: interaction_pb2.Interaction
) -> interaction_pb2.Interaction:
    """With the runs that wait for it, and whether its branch is selected."""
    async with sessions.reading(SessionKey(caller.tenant_id, found.session_id)) as state:
        return interaction_proto(state, from_proto(Interaction, found))
