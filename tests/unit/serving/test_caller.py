"""P2: without authentication the caller is one fixed principal, or the one that it names."""

import pytest

from turngate_core.errors import Reason, Refusal
from turngate_serving.caller import Caller, Trace, caller_of

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Call:
    def __init__(self, *metadata: tuple[str, str | bytes]) -> None:
        self._metadata = metadata

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return self._metadata


def test_a_caller_that_says_nothing_is_the_local_principal() -> None:
    assert caller_of(Call(("user-agent", "grpc"))) == Caller("default", "local", "", Trace())


def test_the_metadata_names_principal_client_and_trace() -> None:
    call = Call(
        ("turngate-user", "ann@example.org"),
        ("turngate-client", "phone 7"),
        ("traceparent", PARENT),
        ("tracestate", "a=1,b=2"),
    )
    assert caller_of(call) == Caller(
        "default", "ann@example.org", "phone 7", Trace(PARENT, "a=1,b=2")
    )


@pytest.mark.parametrize("value", ["a", "a" * 128, " ~!"])
def test_names_of_1_to_128_printable_characters_are_taken(value: str) -> None:
    assert caller_of(Call(("turngate-user", value))).principal == value


@pytest.mark.parametrize("key", ["turngate-user", "turngate-client"])
@pytest.mark.parametrize("value", ["", "a" * 129, "a\n", "a\x7f", "é", b"a", "a\x00b"])
def test_other_names_are_refused(key: str, value: str | bytes) -> None:
    with pytest.raises(Refusal) as caught:
        caller_of(Call((key, value)))
    assert caught.value.reason is Reason.INVALID_FIELD
    assert [violation.field for violation in caught.value.violations] == [key]


@pytest.mark.parametrize("key", ["turngate-user", "turngate-client"])
def test_a_name_given_twice_is_refused(key: str) -> None:
    """A proxy that adds its own must not lose against what the client wrote."""
    with pytest.raises(Refusal, match="more than once"):
        caller_of(Call((key, "ann"), (key, "bob")))


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "x",
        PARENT.upper(),
        PARENT.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        PARENT + "\n",
        PARENT.encode(),
    ],
)
def test_a_bad_trace_is_dropped_and_the_request_goes_on(parent: str | bytes) -> None:
    assert caller_of(Call(("traceparent", parent), ("tracestate", "a=1"))).trace == Trace()


@pytest.mark.parametrize("state", ["a" * 513, "é", b"a=1"])
def test_a_bad_trace_state_is_dropped_alone(state: str | bytes) -> None:
    call = Call(("traceparent", PARENT), ("tracestate", state))
    assert caller_of(call).trace == Trace(PARENT, "")
