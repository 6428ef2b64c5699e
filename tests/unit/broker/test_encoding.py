"""How events are stored: the core's values are the contract's messages, field for field (E4)."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message as ProtoMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_service.domain import events, model
from broker_service.domain.events import Event, SessionEvent
from broker_service.domain.model import (
    GrantScope,
    Message,
    Part,
    Permission,
    PolicyRule,
    ProposedTool,
    Role,
    TextPart,
    ToolCall,
)
from broker_service.encoding import (
    UnknownEventKind,
    decode_event,
    encode_event,
    enum_to_proto,
    from_proto,
    to_proto,
)
from turngate.v1 import (
    event_pb2,
    interaction_pb2,
    message_pb2,
    run_pb2,
    runner_pb2,
    session_pb2,
)

P = TypeVar("P", bound=ProtoMessage)

FILES = (event_pb2, message_pb2, run_pb2, interaction_pb2, session_pb2, runner_pb2)
MODULES = (model, events)

# The position is given by the store; deltas have a sequence of their own and never reach the core.
NOT_IN_THE_CORE = {"SessionEvent": {"position"}}
NOT_EVENTS_OF_THE_CORE = {"TextDelta", "ToolCallDelta"}


def messages_of_the_contract() -> dict[str, Descriptor]:
    found: dict[str, Descriptor] = {}
    for file in FILES:
        found |= file.DESCRIPTOR.message_types_by_name
    return found


def enums_of_the_contract() -> dict[str, EnumDescriptor]:
    found: dict[str, EnumDescriptor] = {}
    for file in FILES:
        found |= file.DESCRIPTOR.enum_types_by_name
    return found


MESSAGES = messages_of_the_contract()
ENUMS = enums_of_the_contract()


def defined_here(kind: type) -> list[type]:
    """The classes of this kind that the core's model defines."""
    return [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and is_a(value, kind)
    ]


def is_a(value: type, kind: type) -> bool:
    return issubclass(value, Enum) if kind is Enum else dataclasses.is_dataclass(value)


DATACLASSES = defined_here(object)
ENUM_CLASSES = defined_here(Enum)


def names_of(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)}


def union_members(hint: Any) -> list[Any]:
    return [member for member in typing.get_args(hint) if member is not types.NoneType]


@pytest.mark.parametrize("cls", DATACLASSES, ids=lambda cls: cls.__name__)
def test_a_value_has_exactly_the_fields_of_its_message(cls: type) -> None:
    """A field that is added to the contract, or to the core, is missed on the other side here."""
    descriptor = MESSAGES[cls.__name__]
    names = names_of(cls)
    expected = set()
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneof.name in names:
            expected.add(oneof.name)
        else:
            expected.add(field.name)
    assert names == expected - NOT_IN_THE_CORE.get(cls.__name__, set())


@pytest.mark.parametrize("cls", DATACLASSES, ids=lambda cls: cls.__name__)
def test_each_field_is_of_the_kind_that_the_contract_says(cls: type) -> None:
    descriptor = MESSAGES[cls.__name__]
    for name, hint in typing.get_type_hints(cls).items():
        if name not in descriptor.fields_by_name:
            kinds = {member.__name__ for member in union_members(hint)}
            fields = descriptor.oneofs_by_name[name].fields
            promised = {f.message_type.name for f in fields if f.message_type is not None}
            assert kinds == promised - NOT_EVENTS_OF_THE_CORE
            continue
        field = descriptor.fields_by_name[name]
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        members = union_members(hint) if is_union else [hint]
        (inner,) = members
        assert kind_of(inner) == kind_of_field(field), f"{cls.__name__}.{name}"
        if field.has_presence and field.message_type is None:
            assert len(members) < len(typing.get_args(hint)), f"{cls.__name__}.{name} may be unset"


def kind_of(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"repeated {kind_of(typing.get_args(hint)[0])}"
    if typing.get_origin(hint) is Mapping:
        return "map"
    return str(hint.__name__)


SCALARS = {
    FieldDescriptor.TYPE_STRING: "str",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int",
    FieldDescriptor.TYPE_INT64: "int",
}


def kind_of_field(field: FieldDescriptor) -> str:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return "map"
    if field.enum_type is not None:
        kind = field.enum_type.name
    elif field.message_type is not None:
        # Instants and durations are milliseconds in the core.
        kind = field.message_type.name
        kind = "int" if kind in ("Timestamp", "Duration") else kind
    else:
        kind = SCALARS[field.type]
    return f"repeated {kind}" if field.is_repeated else kind


@pytest.mark.parametrize("cls", ENUM_CLASSES, ids=lambda cls: cls.__name__)
def test_an_enum_has_exactly_the_values_of_the_contract(cls: type[Enum]) -> None:
    """Names and numbers; what the contract calls UNSPECIFIED is None in the core."""
    values = {value.name: value.number for value in ENUMS[cls.__name__].values}
    (unspecified,) = [name for name, number in values.items() if number == 0]
    prefix = unspecified.removesuffix("UNSPECIFIED")
    assert {prefix + value.name: value.value for value in cls} == {
        name: number for name, number in values.items() if number
    }
    assert all(enum_to_proto(value) == value.value for value in cls)
    assert enum_to_proto(None) == 0


def test_every_event_of_the_contract_is_one_of_the_core() -> None:
    kinds = {
        field.message_type.name
        for field in MESSAGES["SessionEvent"].oneofs_by_name["event"].fields
        if field.message_type is not None
    }
    assert {cls.__name__ for cls in typing.get_args(Event)} == kinds - NOT_EVENTS_OF_THE_CORE


# --- round trips, with strategies made from the classes themselves ---

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers(0, 2**31 - 1)
MILLIS = st.integers(0, 4_102_444_800_000)


def values_for(cls: type, name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field; None for what may be unset, and as `repeated` and `map` whatever fits."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = st.one_of([values_for(cls, name, member) for member in union_members(hint)])
        return st.none() | members if types.NoneType in typing.get_args(hint) else members
    if typing.get_origin(hint) is tuple:
        item = values_for(cls, name, typing.get_args(hint)[0])
        return st.lists(item, max_size=3).map(tuple)
    if typing.get_origin(hint) is Mapping:
        return st.dictionaries(TEXT, TEXT, max_size=3)
    if hint is int:
        field = MESSAGES[cls.__name__].fields_by_name[name]
        return NUMBERS if field.message_type is None else MILLIS
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if dataclasses.is_dataclass(hint):
        return st.deferred(lambda: instances(typing.cast(type, hint)))
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        bool: st.booleans(),
        bytes: st.binary(max_size=8),
    }
    return scalars[hint]


def instances(cls: type) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    strategy = st.builds(cls, **{n: values_for(cls, n, hint) for n, hint in hints.items()})
    return strategy.map(one_of_each_oneof)


def one_of_each_oneof(value: Any) -> Any:
    """Of the members of a oneof that are fields of their own (`Answer.output_json`), keep one."""
    descriptor = MESSAGES[type(value).__name__]
    for oneof in descriptor.oneofs:
        members = [field.name for field in oneof.fields if hasattr(value, field.name)]
        set_ones = [name for name in members if getattr(value, name) is not None]
        value = dataclasses.replace(value, **dict.fromkeys(set_ones[1:]))
    return value


@pytest.mark.parametrize("kind", typing.get_args(Event), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_comes_back_as_it_was_stored(kind: type) -> None:
    """E4, T2."""

    @settings(max_examples=15)
    @given(
        instances(kind),
        MILLIS,
        TEXT,
        st.sampled_from(model.ActorKind),
    )
    def comes_back(event: Event, now: int, actor: str, actor_kind: model.ActorKind) -> None:
        stored = SessionEvent(event, now, actor, actor_kind, "t-1")
        assert decode_event(encode_event(stored)) == stored

    comes_back()


def test_what_is_not_set_and_what_is_empty_are_told_apart() -> None:
    """T2, X4: an empty output is an output; no output is none."""
    for result in (
        model.ToolResult("c-1", output_json=""),
        model.ToolResult("c-1", error_text=""),
        model.ToolResult("c-1"),
    ):
        assert from_proto(model.ToolResult, to_proto(result)) == result
    for decided in (True, False, None):
        answer = model.Answer("a-1", approved=decided)
        assert from_proto(model.Answer, to_proto(answer)) == answer
    for after in (True, False, None):
        tool = model.ProposedTool("c-1", after_answers=after)
        assert from_proto(model.ProposedTool, to_proto(tool)) == tool


def test_milliseconds_are_exact() -> None:
    stored = SessionEvent(events.QueueResumed(), 1_800_000_000_001)
    message = event_pb2.SessionEvent.FromString(encode_event(stored))
    assert (message.create_time.seconds, message.create_time.nanos) == (1_800_000_000, 1_000_000)
    assert decode_event(encode_event(stored)) == stored


def test_an_event_of_an_unknown_kind_stops_the_session_by_name() -> None:
    """Architecture: a broker that meets a kind that it does not know stops serving that session."""
    unknown = event_pb2.SessionEvent().SerializeToString() + b"\xfa\x07\x00"  # field 127
    with pytest.raises(UnknownEventKind):
        decode_event(unknown)
    delta = event_pb2.SessionEvent(text_delta=event_pb2.TextDelta(text="x"))
    with pytest.raises(UnknownEventKind):
        decode_event(delta.SerializeToString())


def parsed(kind: type[P], text: str) -> P:
    """A message with values that the generated types do not know."""
    return text_format.Parse(text, kind())


def test_a_setting_that_is_not_understood_asks_and_widens_nothing() -> None:
    """A1, A3: in a request or a report; an unset permission would allow."""
    rule = parsed(session_pb2.PolicyRule, 'pattern: "*" permission: 9')
    assert from_proto(PolicyRule, rule) == PolicyRule("*", Permission.ASK)
    tool = parsed(runner_pb2.ProposedTool, 'call_id: "c-1" tool_permission: 9 grant_scope: 9')
    assert from_proto(ProposedTool, tool) == ProposedTool(
        "c-1", tool_permission=Permission.ASK, grant_scope=GrantScope.ONCE
    )
    call = parsed(message_pb2.ToolCall, 'call_id: "c-1" name: "t" executor: 9')
    assert from_proto(ToolCall, call) == ToolCall("c-1", "t", executor=None)


def test_a_stored_value_that_is_unknown_stops_the_session_by_name() -> None:
    """Architecture: never read as if it were not set."""
    later = parsed(event_pb2.SessionEvent, 'run_state_changed { run_id: "run_1" state: 99 }')
    with pytest.raises(UnknownEventKind, match="RunState"):
        decode_event(later.SerializeToString())


def test_a_part_of_an_unknown_kind_has_no_content() -> None:
    """T1: it is to be skipped, not refused."""
    unknown = message_pb2.Part.FromString(b"\xfa\x07\x00")
    assert from_proto(Part, unknown) == Part(None)


def test_a_message_keeps_the_order_of_its_parts() -> None:
    """T1."""
    parts = (Part(TextPart("a")), Part(ToolCall("c-1", "t")), Part(TextPart("b")))
    message = Message("m-1", Role.ASSISTANT, parts)
    assert from_proto(Message, to_proto(message)) == message
