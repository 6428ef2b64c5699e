"""The broker's settings: one table, in code and in docs/settings.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from broker_service.domain.limits import Limits
from turngate_serving.settings import ServingSettings, TextList, setting

KIB = 1024


class BrokerSettings(ServingSettings):
    """Settings of `turngate broker`, by flag, environment (TURNGATE_BROKER_*) and file."""

    section: ClassVar[str] = "broker"

    listen: str = setting(
        "127.0.0.1:50051", "Where to listen: host:port (port 0: any free one) or unix:/path."
    )
    store: str = setting(
        "sqlite:turngate.db", "The store: sqlite:PATH or postgresql://USER@HOST/DATABASE."
    )
    migrate: bool = setting(
        False, "Bring a PostgreSQL database up to this version's schema at the start."
    )
    runner: TextList = setting(
        ("127.0.0.1:50052",), "Address of a runner; may be given several times."
    )
    default_agent: str = setting("demo", "The agent of sessions that name none.")
    policy: str = setting(
        "",
        "A TOML file with the operator's policy for all sessions; read again on SIGHUP. "
        "Empty: none.",
    )
    ready_file: str = setting(
        "", "A file that gets the bound address, as JSON, once calls are taken."
    )
    lease: float = setting(
        5.0,
        "How long a run is held without a sign of life before another broker takes it.",
        unit="s",
        least=0.5,
        greatest=300,
    )
    heartbeat: float = setting(
        1.0, "How often leases are prolonged.", unit="s", least=0.1, greatest=60
    )
    runner_retries: int = setting(
        5, "Attempts of a run that may be lost in a row.", least=1, greatest=100
    )
    retry_pause: float = setting(
        0.5,
        "The pause before a lost run is handed over again; doubles each time.",
        unit="s",
        least=0.01,
        greatest=60,
    )
    retry_pause_limit: float = setting(
        30.0, "The longest such pause.", unit="s", least=0.01, greatest=3600
    )
    silent_runner: float = setting(
        5.0,
        "An attempt that sends nothing for so long, not even a heartbeat, is lost.",
        unit="s",
        least=0.5,
        greatest=300,
    )
    unplaced_after: float = setting(
        60.0,
        "A run that no runner takes says so after this time.",
        unit="s",
        least=1,
        greatest=86_400,
    )
    unplaced_limit: float = setting(
        86_400.0, "A run that no runner takes fails after this time.", unit="s", least=1
    )
    cancel_grace: float = setting(
        10.0,
        "How long a cancelled attempt may take to report its end.",
        unit="s",
        least=0.1,
        greatest=600,
    )
    unclaimed_after: float = setting(
        600.0,
        "An undeclared client tool that nobody answers or reports is settled after this time.",
        unit="s",
        least=0.1,
        greatest=604_800,
    )
    idle_frame: float = setting(
        15.0, "A watch sends an empty frame after this time.", unit="s", least=0.1, greatest=300
    )
    compact_after: float = setting(
        60.0,
        "The pieces in which a message was streamed are removed this long after its end.",
        unit="s",
        least=0.1,
        greatest=604_800,
    )
    webhooks: str = setting(
        "", "A TOML file with the targets that are told what waits. Empty: nobody is told."
    )
    webhook_retry: float = setting(
        5.0,
        "The pause before a webhook is sent a second time; later ones grow in proportion.",
        unit="s",
        least=0.01,
        greatest=60,
    )
    webhook_timeout: float = setting(
        20.0, "How long a target may take to answer a webhook.", unit="s", least=0.1, greatest=120
    )
    stuck_reader: float = setting(
        30.0, "A watch whose reader takes nothing is ended.", unit="s", least=1, greatest=600
    )
    json_bytes: int = setting(
        256 * KIB,
        "JSON text of arguments or an output.",
        unit="bytes",
        least=KIB,
        greatest=512 * KIB,
    )
    json_depth: int = setting(64, "Nesting of that JSON.", unit="levels", least=8, greatest=256)
    text_bytes: int = setting(
        256 * KIB, "Text of a message.", unit="bytes", least=KIB, greatest=512 * KIB
    )
    message_bytes: int = setting(
        900 * KIB, "A whole message.", unit="bytes", least=KIB, greatest=900 * KIB
    )
    held_messages: int = setting(
        100, "Held messages of a session.", unit="messages", least=1, greatest=1000
    )
    questions_a_turn: int = setting(32, "Questions of a turn.", least=1, greatest=1000)
    questions_a_step: int = setting(32, "Questions of a step.", least=1, greatest=1000)
    max_forks_per_call: int = setting(64, "Forks of one call.", least=1, greatest=1000)
    page_size_limit: int = setting(1000, "Entries of a page.", least=1, greatest=1000)
    watches_a_session: int = setting(1000, "Watches of a session.", least=1, greatest=100_000)
    watches_a_principal: int = setting(200, "Watches of a principal.", least=1, greatest=100_000)


@dataclass(frozen=True, slots=True)
class PublishedLimits:
    """The limits that requests are checked against, and that GetServerInfo tells (E3)."""

    json_bytes: int = 256 * KIB
    json_depth: int = 64
    text_bytes: int = 256 * KIB
    message_bytes: int = 900 * KIB
    page_size_limit: int = 1000


def published_limits(settings: BrokerSettings) -> PublishedLimits:
    return PublishedLimits(
        json_bytes=settings.json_bytes,
        json_depth=settings.json_depth,
        text_bytes=settings.text_bytes,
        message_bytes=settings.message_bytes,
        page_size_limit=settings.page_size_limit,
    )


def domain_limits(settings: BrokerSettings) -> Limits:
    return Limits(
        held_messages=settings.held_messages,
        questions_a_turn=settings.questions_a_turn,
        questions_a_step=settings.questions_a_step,
        max_forks_per_call=settings.max_forks_per_call,
        attempts=settings.runner_retries,
        compact_after_ms=round(settings.compact_after * 1000),
        unclaimed_after_ms=round(settings.unclaimed_after * 1000),
    )
