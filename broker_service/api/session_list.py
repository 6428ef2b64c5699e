"""The list of sessions, newest first, with filters."""

from __future__ import annotations

from broker_service.api import pages
from broker_service.storage.port import SessionFilter, Store
from turngate.v1 import broker_pb2, session_pb2
from turngate_serving.caller import Caller

_KIND = "sessions"

ROWS_AT_MOST = 10_000
"""Rows that one call looks through. A page may so be short, even empty, and not be the last one:
what counts is its token. It keeps a filter that finds little from holding up the store.
"""


async def list_sessions(
    store: Store, caller: Caller, request: broker_pb2.ListSessionsRequest, max_page: int
) -> broker_pb2.ListSessionsResponse:
    """A page of sessions that fit the filter.

    Stable: a page goes on behind the last session that was looked at, whatever was created, changed
    or deleted meanwhile.
    """
    place = pages.place_of(_KIND, request.page_token, 2)
    after = (pages.number(place[0]), place[1]) if place else None
    size = pages.page_size(request.page_size, max_page)
    # Owners are among the people by whom a store finds sessions.
    where = SessionFilter(
        caller.tenant_id, request.owner or None, tuple(sorted(request.labels.items()))
    )
    response = broker_pb2.ListSessionsResponse()
    length = 0
    looked_at = 0
    while True:
        listing = await store.list_sessions(where, after, size)
        for row in listing.rows:
            session = session_pb2.Session.FromString(row)
            if _matches(request, session):
                length += len(row)
                full = len(response.sessions) == size or length > pages.PAGE_BYTES
                if response.sessions and full:
                    response.next_page_token = _after(response.sessions[-1])
                    return response
                response.sessions.append(session)
        after = listing.next_after
        looked_at += len(listing.rows)
        if after is None:
            return response
        if looked_at >= ROWS_AT_MOST or (len(response.sessions) == size and not _filters(request)):
            response.next_page_token = pages.token(_KIND, *after)
            return response


def _matches(request: broker_pb2.ListSessionsRequest, session: session_pb2.Session) -> bool:
    return request.owner in ("", session.owner) and (
        not request.only_waiting or session.open_interaction_count > 0
    )


def _filters(request: broker_pb2.ListSessionsRequest) -> bool:
    """Whether sessions that the store finds may not fit."""
    return bool(request.owner) or request.only_waiting


def _after(session: session_pb2.Session) -> str:
    return pages.token(_KIND, session.create_time.ToMilliseconds(), session.id)
