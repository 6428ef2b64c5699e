"""The broker as a process: puts the parts together, serves, and stops cleanly."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

import grpc
import structlog
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from broker_service.api.service import BrokerApi
from broker_service.compaction import Compaction
from broker_service.config import BrokerSettings, domain_limits
from broker_service.dispatch.dispatcher import Dispatcher
from broker_service.dispatch.placement import Placement
from broker_service.dispatch.timers import Timers
from broker_service.policy_file import PolicyReload, read_policy
from broker_service.sessions import Sessions
from broker_service.storage.open import connect_store
from broker_service.storage.port import StoreError
from broker_service.watch.hub import WatchHub
from broker_service.watch.tail import WatchSettings
from broker_service.webhooks.delivery import Delivery, Pace
from broker_service.webhooks.targets import Target, read_targets
from turngate.v1 import broker_pb2
from turngate_serving.exit import StartError
from turngate_serving.ready import say_ready
from turngate_serving.server import Hook, ServerOptions, build_server, serve_until_signal

Serializer = Callable[[Message], bytes]

SERVICE = "turngate.v1.BrokerService"

log = structlog.stdlib.get_logger(__name__)


async def serve(settings: BrokerSettings) -> int:
    """Serve until a signal comes; answers the exit code. Raises StartError."""
    check_beats(settings)
    policy_file = Path(settings.policy) if settings.policy else None
    policy = read_policy(policy_file) if policy_file else None
    targets = read_targets(Path(settings.webhooks)) if settings.webhooks else ()
    try:
        store = await connect_store(settings.store, migrate=settings.migrate)
    except StoreError as error:
        raise StartError(str(error)) from error
    try:
        sessions = Sessions(
            store,
            domain_limits(settings),
            owner_name(),
            lease_ms=round(settings.lease * 1000),
            cancel_grace_ms=round(settings.cancel_grace * 1000),
            targets=targets,
        )
        sessions.set_operator_policy(policy)
        hub = WatchHub(store, watch_settings(settings))
        placement = Placement(settings.runner)
        api = BrokerApi(sessions, hub, settings, build_version())
        server = await build_server(
            settings.listen,
            lambda grpc_server: register(grpc_server, api),
            (SERVICE,),
            options=ServerOptions(
                keepalive_time_s=settings.keepalive_time,
                keepalive_timeout_s=settings.keepalive_timeout,
            ),
        )
        dispatcher = Dispatcher(sessions, placement, settings)
        timers = Timers(sessions, settings.heartbeat)
        compaction = Compaction(store, sessions.owner, sessions.lease_ms)
        dispatcher.start()
        timers.start()
        compaction.start(settings.heartbeat)
        delivery = start_delivery(settings, sessions, targets) if targets else None
        policy_reload = PolicyReload(policy_file, sessions.set_operator_policy)
        policy_reload.start()
        try:
            return await serve_until_signal(
                server,
                hooks=(
                    drain_watches(hub),
                    timers.close,
                    compaction.close,
                    dispatcher.close,
                    sessions.close,
                    *((delivery.close,) if delivery else ()),
                ),
                hook_timeout_s=settings.drain_timeout,
                grace_s=settings.drain_grace,
                on_listening=lambda address: say_ready(settings.ready_file, address),
            )
        finally:
            await policy_reload.close()
            await timers.close()
            await compaction.close()
            await dispatcher.close()
            await placement.close()
            if delivery:
                await delivery.close()
    finally:
        await store.close()


def start_delivery(
    settings: BrokerSettings, sessions: Sessions, targets: Sequence[Target]
) -> Delivery:
    """Webhooks are sent from now on, until it is closed."""
    pace = Pace(retry_s=settings.webhook_retry, timeout_s=settings.webhook_timeout)
    delivery = Delivery(sessions.store, sessions.owner, sessions.lease_ms, targets, pace)
    delivery.start(settings.heartbeat)
    return delivery


def check_beats(settings: BrokerSettings) -> None:
    """A lease, and a runner's silence, have to outlast some missed beats. Raises StartError."""
    for name in ("lease", "silent_runner"):
        if getattr(settings, name) < 2 * settings.heartbeat:
            raise StartError(
                f"{name} ({getattr(settings, name):g} s) has to be at least twice the heartbeat "
                f"({settings.heartbeat:g} s)"
            )


def watch_settings(settings: BrokerSettings) -> WatchSettings:
    return WatchSettings(
        idle_frame=settings.idle_frame,
        stuck_reader=settings.stuck_reader,
        watches_a_session=settings.watches_a_session,
        watches_a_principal=settings.watches_a_principal,
    )


def drain_watches(hub: WatchHub) -> Hook:
    async def end_watches() -> None:
        hub.close()

    return end_watches


def register(server: aio.Server, api: BrokerApi) -> None:
    """Add the service, as its descriptor has it; but watches write ready bytes: those of a session
    are encoded once for all watchers, and a write that is stuck can be ended.
    """
    watches: dict[str, Callable[..., object]] = {
        "WatchSession": api.watch_frames,
        "WatchInteractions": api.inbox_frames,
    }
    handlers: dict[str, grpc.RpcMethodHandler[Message, Message]] = {}
    for method in broker_pb2.DESCRIPTOR.services_by_name["BrokerService"].methods:
        parse = GetMessageClass(method.input_type).FromString
        if method.name in watches:
            handlers[method.name] = grpc.unary_stream_rpc_method_handler(
                watches[method.name], parse, cast(Serializer, bytes)
            )
            continue
        kind = _HANDLERS[method.client_streaming, method.server_streaming]
        serialize = GetMessageClass(method.output_type).SerializeToString
        handlers[method.name] = kind(getattr(api, method.name), parse, serialize)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


_HANDLERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
}


def owner_name() -> str:
    """Under which this process claims work: never used by another one, past or future."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def build_version() -> str:
    try:
        return version("turngate")
    except PackageNotFoundError:
        return "unknown"
