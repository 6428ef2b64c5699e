"""E2: the contract, the enum and the table of codes name the same reasons and codes."""

import re
from pathlib import Path

import pytest

from turngate.v1 import error_reason_pb2
from turngate_core.errors import CODES, Code, Reason, Refusal

PROTO = Path(__file__).parents[3] / "protos" / "turngate" / "v1" / "error_reason.proto"
PREFIX = "ERROR_REASON_"


def codes_by_reason_in_the_contract() -> dict[str, tuple[str, ...]]:
    """The words in capitals with which each value's comment begins."""
    found = re.findall(
        rf"((?:^ *//.*\n)+)^ *{PREFIX}(\w+) = [1-9]", PROTO.read_text(encoding="utf-8"), re.M
    )
    codes = {}
    for comment, name in found:
        first = comment.split("//")[1].split(".")[0].split(",")[0]
        codes[name] = tuple(re.findall(r"[A-Z_]{3,}", first))
    return codes


def test_the_enum_of_the_contract_is_the_enum_in_code() -> None:
    contract = set(error_reason_pb2.ErrorReason.keys()) - {f"{PREFIX}UNSPECIFIED"}
    assert {f"{PREFIX}{reason}" for reason in Reason} == contract


def test_each_reason_has_the_codes_that_the_contract_says() -> None:
    assert codes_by_reason_in_the_contract() == {
        reason.value: tuple(code.value for code in codes) for reason, codes in CODES.items()
    }


def test_a_reason_does_not_come_with_another_code() -> None:
    assert Refusal(Reason.LIMIT_EXCEEDED, "").code is Code.INVALID_ARGUMENT
    refusal = Refusal(Reason.LIMIT_EXCEEDED, "", code=Code.RESOURCE_EXHAUSTED)
    assert refusal.code is Code.RESOURCE_EXHAUSTED
    with pytest.raises(ValueError, match="RUN_NOT_FOUND does not come with INTERNAL"):
        Refusal(Reason.RUN_NOT_FOUND, "", code=Code.INTERNAL)
