"""The Python client of Turngate, for asyncio.

`TurngateClient` and its sessions make the calls; `SessionView` is what a session's events fold to.
"""

from turngate_client.client import TurngateClient
from turngate_client.errors import FieldViolation, TurngateError, WaitTimedOut
from turngate_client.folding import apply_event, fold
from turngate_client.following import FollowedSession
from turngate_client.inbox import InboxView
from turngate_client.retries import RetryPolicy
from turngate_client.session import SessionClient
from turngate_client.session_view import CallView, NodeView, SessionView
from turngate_client.snapshots import SnapshotPieces, apply_snapshot
from turngate_client.watching import SessionWatch

__all__ = [
    "CallView",
    "FieldViolation",
    "FollowedSession",
    "InboxView",
    "NodeView",
    "RetryPolicy",
    "SessionClient",
    "SessionView",
    "SessionWatch",
    "SnapshotPieces",
    "TurngateClient",
    "TurngateError",
    "WaitTimedOut",
    "apply_event",
    "apply_snapshot",
    "fold",
]
