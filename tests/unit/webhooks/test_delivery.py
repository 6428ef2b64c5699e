"""Delivery: at least once, with pauses, each target by itself. The store's clock is the test's."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
import structlog
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from broker_service.storage.port import (
    EraseSession,
    PutWork,
    SessionKey,
    Store,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.storage.sqlite import open_sqlite
from broker_service.webhooks.delivery import (
    REQUESTS_A_TARGET,
    WAITING_A_TARGET,
    Delivery,
    Pace,
)
from broker_service.webhooks.outbox import Webhook, decode_webhook
from broker_service.webhooks.posting import signed_headers
from broker_service.webhooks.schedule import PAUSES_S
from broker_service.webhooks.targets import Target
from tests.unit.watch.samples import settled, within

KEY, NEW_KEY = b"k" * 32, b"n" * 24
OPS = Target("ops", "https://ops.example/in?token=t0k3n", (KEY,))
CHAT = Target("chat", "https://chat.example/in", (KEY,))
LEASE_MS = 5_000
BODY = '{"type":"interaction.opened"}'
S = SessionKey("t-1", "s-1")

Answer = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


class Clock:
    def __init__(self) -> None:
        self.instant = 1_800_000_000_000

    def __call__(self) -> int:
        return self.instant

    def pass_s(self, seconds: float) -> None:
        self.instant += round(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "store.db", clock)
    yield opened
    await opened.close()


class Receivers(httpx2.AsyncBaseTransport):
    """All targets: what came, and what is answered, by host. Without an answer it hangs."""

    def __init__(self) -> None:
        self.came: list[httpx2.Request] = []
        self.answers: dict[str, httpx2.Response | Exception | None] = {}
        self.hanging = 0
        self.released = asyncio.Event()
        """Those that hang answer now, each with what it has in `answers` by then."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.came.append(request)
        answer = self.answers.get(request.url.host, httpx2.Response(204))
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            self.hanging += 1
            try:
                await self.released.wait()
            finally:
                self.hanging -= 1
            answer = self.answers[request.url.host]
        assert isinstance(answer, httpx2.Response)
        body = httpx2.ByteStream(b"thanks")
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=body)

    def at(self, target: Target) -> list[httpx2.Request]:
        host = httpx2.URL(target.url).host
        return [request for request in self.came if request.url.host == host]


class Scene:
    """A broker's delivery, and a store with rows for it."""

    def __init__(self, store: Store, clock: Clock, *targets: Target, owner: str = "b1") -> None:
        self.store = store
        self.clock = clock
        self.receivers = Receivers()
        pace = Pace(retry_s=5.0, timeout_s=60.0, draw=lambda: 0.0)
        self.delivery = Delivery(
            store, owner, LEASE_MS, targets or (OPS, CHAT), pace, self.receivers
        )

    async def put(self, *webhook_ids: str, target: Target = OPS) -> None:
        rows = tuple(
            PutWork(
                WorkKey(WorkKind.WEBHOOK, S, f"{webhook_id}/{target.name}"),
                self.clock.instant,
                payload=Webhook(target.name, webhook_id, BODY).encode(),
            )
            for webhook_id in webhook_ids
        )
        await self.store.commit(Write(effects=rows))

    async def look(self) -> None:
        """Take up what is due, and let what comes of it be stored."""
        while await within(self.delivery.look()):
            pass
        await self.quiet()

    async def quiet(self) -> None:
        """Until nothing moves but requests that hang."""
        async with asyncio.timeout(20):
            await settled()
            while self.sending() > self.receivers.hanging:
                await settled()

    def sending(self) -> int:
        """How many requests are under way, what is stored of them included."""
        return sum(len(lane.sending) for lane in self.delivery._lanes.values())

    async def due_in_s(self) -> float | None:
        due = await self.store.next_due(WorkKind.WEBHOOK)
        return None if due is None else (due - self.clock.instant) / 1000


@pytest.fixture
async def scene(store: Store, clock: Clock) -> AsyncIterator[Scene]:
    made = Scene(store, clock)
    yield made
    await within(made.delivery.close())


async def test_what_was_received_is_not_sent_again(scene: Scene) -> None:
    await scene.put("whk_1")
    await scene.look()
    await scene.look()
    (request,) = scene.receivers.came
    assert request.method == "POST"
    assert request.content.decode() == BODY
    assert request.headers["webhook-id"] == "whk_1"
    assert request.headers["content-type"] == "application/json"
    assert await scene.due_in_s() is None


def test_a_consumer_verifies_with_any_of_the_secrets() -> None:
    """While a secret is rotated receivers know the old or the new one."""
    now = datetime.now(UTC)
    webhook = Webhook("ops", "whk_1", BODY)
    headers = signed_headers(replace(OPS, secrets=(NEW_KEY, KEY)), webhook, now)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for key in (KEY, NEW_KEY):
        assert Verifier(key).verify(BODY, headers) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Verifier(b"x" * 32).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(KEY).verify(BODY.replace("opened", "closed"), headers)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the specification's libraries, so that both sides may not be wrong alike."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    target = replace(OPS, secrets=(key,))
    webhook = Webhook("ops", "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}')
    headers = signed_headers(target, webhook, datetime.fromtimestamp(1614265330, UTC))
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(500),
        httpx2.Response(404),
        httpx2.Response(302, headers={"location": "https://elsewhere.example"}),
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("late"),
        RuntimeError("a mistake"),
    ],
)
async def test_what_fails_is_sent_again_with_growing_pauses_and_then_given_up(
    scene: Scene, answer: httpx2.Response | Exception
) -> None:
    scene.receivers.answers["ops.example"] = answer
    await scene.put("whk_1")
    with structlog.testing.capture_logs() as logs:
        for pause in PAUSES_S:
            await scene.look()
            assert await scene.due_in_s() == pause
            scene.clock.pass_s(pause - 0.001)
            await scene.look()
            scene.clock.pass_s(0.001)
        await scene.look()
    assert await scene.due_in_s() is None
    came = scene.receivers.came
    assert len(came) == len(PAUSES_S) + 1
    assert {request.url.host for request in came} == {"ops.example"}, "no redirect is followed"
    assert {request.headers["webhook-id"] for request in came} == {"whk_1"}
    assert {request.content for request in came} == {BODY.encode()}
    assert len({request.headers["webhook-timestamp"] for request in came}) == len(came)
    assert [line["log_level"] for line in logs if line["event"] == "webhook given up"] == ["error"]
    assert "t0k3n" not in str(logs)


async def test_a_target_that_comes_back_gets_what_it_missed(scene: Scene) -> None:
    scene.receivers.answers["ops.example"] = httpx2.ConnectError("refused")
    await scene.put("whk_1", "whk_2")
    await scene.look()
    del scene.receivers.answers["ops.example"]
    scene.clock.pass_s(5)
    await scene.look()
    assert await scene.due_in_s() is None
    ids = [request.headers["webhook-id"] for request in scene.receivers.came]
    assert sorted(ids) == ["whk_1", "whk_1", "whk_2", "whk_2"]


async def test_a_target_may_ask_for_a_longer_pause_for_all_that_it_gets(scene: Scene) -> None:
    scene.receivers.answers["ops.example"] = httpx2.Response(429, headers={"retry-after": "60"})
    await scene.put("whk_1")
    await scene.look()
    assert await scene.due_in_s() == 60
    await scene.put("whk_2")
    await scene.put("whk_3", target=CHAT)
    scene.clock.pass_s(59)
    await scene.look()
    assert len(scene.receivers.at(OPS)) == 1
    assert len(scene.receivers.at(CHAT)) == 1
    del scene.receivers.answers["ops.example"]
    scene.clock.pass_s(1)
    await scene.look()
    assert len(scene.receivers.at(OPS)) == 3


async def test_a_shorter_retry_after_than_the_pause_changes_nothing(scene: Scene) -> None:
    scene.receivers.answers["ops.example"] = httpx2.Response(503, headers={"retry-after": "1"})
    await scene.put("whk_1")
    await scene.look()
    assert await scene.due_in_s() == 5


async def test_a_target_that_is_gone_is_told_nothing_any_more(scene: Scene) -> None:
    scene.receivers.answers["ops.example"] = httpx2.Response(410)
    await scene.put("whk_1")
    with structlog.testing.capture_logs() as logs:
        await scene.look()
        await scene.put("whk_2")
        await scene.put("whk_3", target=CHAT)
        await scene.look()
    assert len(scene.receivers.at(OPS)) == 1
    assert len(scene.receivers.at(CHAT)) == 1
    assert await scene.due_in_s() is None
    assert [line["target"] for line in logs if line["log_level"] == "error"] == ["ops"]


async def test_a_target_that_hangs_delays_no_other_and_takes_so_many_requests(
    scene: Scene,
) -> None:
    scene.receivers.answers["ops.example"] = None
    many = [f"whk_{n}" for n in range(WAITING_A_TARGET + 50)]
    await scene.put(*many)
    await scene.put("whk_chat", target=CHAT)
    await scene.look()
    assert len(scene.receivers.at(CHAT)) == 1
    assert scene.receivers.hanging == REQUESTS_A_TARGET
    scene.clock.pass_s(1)  # before leases end
    await scene.look()
    assert scene.receivers.hanging == REQUESTS_A_TARGET


async def test_what_is_beyond_the_queue_of_a_target_is_sent_later(scene: Scene) -> None:
    many = [f"whk_{n:03}" for n in range(WAITING_A_TARGET * 2)]
    await scene.put(*many)
    await scene.look()
    for _ in range(3):
        scene.clock.pass_s(5)
        await scene.look()
    came = sorted(request.headers["webhook-id"] for request in scene.receivers.came)
    assert came == many, "each once"


async def test_what_a_failing_target_cannot_take_is_looked_at_less_often(
    scene: Scene, store: Store
) -> None:
    """A long backlog of a dead target costs little: its rows are touched every five minutes."""
    scene.receivers.answers["ops.example"] = httpx2.Response(500)
    await scene.put("whk_first")
    await scene.look()
    scene.receivers.answers["ops.example"] = None
    held = REQUESTS_A_TARGET + WAITING_A_TARGET
    await scene.put(*(f"whk_{n}" for n in range(held + 50)))
    await scene.look()
    scene.clock.pass_s(PAUSES_S[1] - 1)  # all leases have ended
    left = await store.claim(WorkKind.WEBHOOK, "b2", scene.clock.instant + 1, 1_000)
    assert len(left) == 1 + held


async def test_S2_leases_of_what_waits_are_prolonged(scene: Scene, store: Store) -> None:
    scene.receivers.answers["ops.example"] = None
    await scene.put(*(f"whk_{n}" for n in range(REQUESTS_A_TARGET + 5)))
    await scene.look()
    for _ in range(4):
        scene.clock.pass_s(LEASE_MS / 1000 - 1)
        await scene.look()
        assert await store.claim(WorkKind.WEBHOOK, "b2", scene.clock.instant + 1, 100) == ()
    scene.receivers.answers["ops.example"] = httpx2.Response(204)
    scene.receivers.released.set()
    await scene.quiet()
    assert len(scene.receivers.came) == REQUESTS_A_TARGET + 5, "each once"


async def test_S2_who_was_taken_over_writes_nothing(
    scene: Scene, store: Store, clock: Clock
) -> None:
    """It may be sent twice, but what the new owner has stored stands (at least once)."""
    scene.receivers.answers["ops.example"] = None
    await scene.put("whk_1")
    await scene.look()
    clock.pass_s(LEASE_MS / 1000)
    other = Scene(store, clock, owner="b2")
    other.receivers.answers["ops.example"] = httpx2.Response(500)
    await other.look()
    assert await scene.due_in_s() == 5
    # The first one hears only now that it was received, and would remove the row.
    scene.receivers.answers["ops.example"] = httpx2.Response(204)
    scene.receivers.released.set()
    await scene.quiet()
    clock.pass_s(5)
    (work,) = await store.claim(WorkKind.WEBHOOK, "b3", clock.instant + 1, 5)
    assert decode_webhook(work.payload).failures == 1
    await within(other.delivery.close())


async def test_S2_what_a_dead_broker_had_claimed_is_sent_by_another(
    scene: Scene, store: Store, clock: Clock
) -> None:
    await scene.put("whk_1")
    await store.claim(WorkKind.WEBHOOK, "dead", clock.instant + LEASE_MS, 5)
    await scene.look()
    assert scene.receivers.came == []
    clock.pass_s(LEASE_MS / 1000)
    await scene.look()
    assert [request.headers["webhook-id"] for request in scene.receivers.came] == ["whk_1"]


async def test_a_stop_cuts_off_what_hangs_and_keeps_its_rows(
    scene: Scene, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_service.webhooks.delivery.LAST_WORDS_S", 0.05)
    scene.receivers.answers["ops.example"] = None
    many = [f"whk_{n}" for n in range(REQUESTS_A_TARGET + 2)]
    await scene.put(*many)
    await scene.look()
    await within(scene.delivery.close(), 5)
    await within(scene.delivery.close(), 5)
    assert scene.receivers.hanging == 0
    assert len(scene.receivers.came) == REQUESTS_A_TARGET, "nothing is begun any more"
    scene.clock.pass_s(LEASE_MS / 1000)
    left = await store.claim(WorkKind.WEBHOOK, "b2", scene.clock.instant + 1, 100)
    assert len(left) == len(many)
    assert {decode_webhook(work.payload).failures for work in left} == {0}


async def test_rows_of_a_session_that_was_erased_meanwhile_do_not_come_back(
    scene: Scene, store: Store
) -> None:
    scene.receivers.answers["ops.example"] = None
    await scene.put("whk_1")
    await scene.look()
    await store.commit(Write(effects=(EraseSession(S),)))
    scene.receivers.answers["ops.example"] = httpx2.Response(500)
    scene.receivers.released.set()
    await scene.quiet()
    assert await scene.due_in_s() is None


async def test_a_target_that_is_not_configured_may_be_known_elsewhere(
    scene: Scene, store: Store, clock: Clock
) -> None:
    """Brokers get a new file one after the other: nothing is lost meanwhile."""
    new = Target("new", "https://new.example", (KEY,))
    await scene.put("whk_1", target=new)
    await scene.look()
    assert await scene.due_in_s() == 5
    clock.pass_s(5)
    other = Scene(store, clock, OPS, new, owner="b2")
    await other.look()
    assert len(other.receivers.at(new)) == 1
    await within(other.delivery.close())


async def test_a_row_that_nobody_understands_keeps_no_other(scene: Scene, store: Store) -> None:
    broken = PutWork(WorkKey(WorkKind.WEBHOOK, S, "broken"), 0, payload=b"{}")
    await store.commit(Write(effects=(broken,)))
    await scene.put("whk_1")
    with structlog.testing.capture_logs() as logs:
        await scene.look()
    assert len(scene.receivers.came) == 1
    assert [line["webhook"] for line in logs if line["log_level"] == "error"] == ["broken"]
