"""Events and their values to and from the wire form of the contract.

`domain.model` and `domain.events` have the names and fields of the contract's messages, so that one
mapping by name serves all of them: a dataclass is the message of its name, an enum the enum of its
name, a union the oneof of its field's name, milliseconds a Timestamp or a Duration. `None` is what
is not set. The converters of a class are worked out once.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from broker_service.domain.events import SessionEvent
from broker_service.domain.model import GrantScope, Permission
from turngate.v1 import (
    broker_pb2,
    error_reason_pb2,
    event_pb2,
    interaction_pb2,
    message_pb2,
    run_pb2,
    runner_pb2,
    session_pb2,
)

T = TypeVar("T")

_FILES = (
    event_pb2,
    message_pb2,
    run_pb2,
    interaction_pb2,
    session_pb2,
    runner_pb2,
    broker_pb2,
    error_reason_pb2,
)


class UnknownEventKind(Exception):
    """A stored event that this broker does not know all of: it must not serve that session."""


NOT_UNDERSTOOD: Mapping[type[Enum], Enum] = {
    Permission: Permission.ASK,
    GrantScope: GrantScope.ONCE,
}
"""What a value of a later revision means in a request or a report; where nothing stands here, it
counts as not set. A setting that is not understood asks, and never widens an approval (A1, A3).
"""


def to_proto(value: object) -> Proto:
    """The contract's message of a value of `domain.model` or `domain.events`."""
    message: Proto = GetMessageClass(_descriptor(typing.cast(Any, type(value))))()
    _fill(value, message)
    return message


def from_proto(kind: type[T], message: Proto) -> T:
    """The value of this class that a message holds. What is of a later revision is left out."""
    value: T = _plan(typing.cast(Any, kind), stored=False).read(message)
    return value


def encode_event(event: SessionEvent) -> bytes:
    """An event as it is stored: all but its position."""
    return to_proto(event).SerializeToString()


def decode_event(payload: bytes) -> SessionEvent:
    """A stored event. Raises UnknownEventKind."""
    message = event_pb2.SessionEvent.FromString(payload)
    if message.WhichOneof("event") is None:
        raise UnknownEventKind("the log holds a kind of event that this version does not know")
    event: SessionEvent = _plan(SessionEvent, stored=True).read(message)
    return event


def enum_to_proto(value: Enum | None) -> int:
    """The number of an enum's value in the contract; 0 for None."""
    return 0 if value is None else _enum_numbers(type(value))[value]


def _fill(value: object, message: Proto) -> None:
    _plan(typing.cast(Any, type(value)), stored=True).write(value, message)


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How a class is written to, and read from, its message."""

    write: Callable[[Any, Any], None]
    read: Callable[[Any], Any]


@cache
def _plan(cls: type[Any], stored: bool) -> _Plan:
    """`stored`: an unknown value is an error when it is read."""
    descriptor = _descriptor(typing.cast(Any, cls))
    hints = typing.get_type_hints(cls)
    fields = [
        (field.name, _converter(descriptor, field.name, hints[field.name], stored))
        for field in dataclasses.fields(typing.cast(Any, cls))
    ]

    def write(value: Any, message: Any) -> None:
        for name, converter in fields:
            attribute = getattr(value, name)
            if attribute is not None:
                converter.write(attribute, message)

    def read(message: Any) -> Any:
        return cls(*[converter.read(message) for _, converter in fields])

    return _Plan(write, read)


def _converter(descriptor: Descriptor, name: str, hint: Any, stored: bool) -> _Plan:
    if name in descriptor.oneofs_by_name and name not in descriptor.fields_by_name:
        return _oneof(descriptor, name, hint, stored)
    field = descriptor.fields_by_name[name]
    inner = _without_none(hint)
    if typing.get_origin(inner) is tuple:
        return _repeated(field, typing.get_args(inner)[0], stored)
    if typing.get_origin(inner) in (Mapping, dict) or inner is Mapping:
        return _mapping(name)
    if isinstance(inner, type) and issubclass(inner, Enum):
        return _enum(name, inner, stored)
    if dataclasses.is_dataclass(inner):
        return _submessage(name, typing.cast(type, inner), stored)
    if field.message_type is not None:
        return _instant(name) if field.message_type.name == "Timestamp" else _duration(name)
    return _scalar(field, optional=inner is not hint)


def _scalar(field: FieldDescriptor, *, optional: bool) -> _Plan:
    name = field.name
    if optional and field.has_presence:
        return _Plan(
            lambda value, message: setattr(message, name, value),
            lambda message: getattr(message, name) if message.HasField(name) else None,
        )
    return _Plan(
        lambda value, message: setattr(message, name, value),
        lambda message: getattr(message, name),
    )


def _enum(name: str, cls: type[Enum], stored: bool) -> _Plan:
    numbers = _enum_numbers(cls)
    values: dict[int, Enum | None] = {number: value for value, number in numbers.items()}
    values[0] = None

    def read(message: Any) -> Enum | None:
        number = getattr(message, name)
        if number in values:
            return values[number]
        if stored:
            raise UnknownEventKind(
                f"the log holds a {cls.__name__} that this version does not know"
            )
        return NOT_UNDERSTOOD.get(cls)

    return _Plan(lambda value, message: setattr(message, name, numbers[value]), read)


def _submessage(name: str, cls: type, stored: bool) -> _Plan:
    def write(value: Any, message: Any) -> None:
        part = getattr(message, name)
        part.SetInParent()
        _fill(value, part)

    def read(message: Any) -> Any:
        return _plan(cls, stored).read(getattr(message, name)) if message.HasField(name) else None

    return _Plan(write, read)


def _repeated(field: FieldDescriptor, item: Any, stored: bool) -> _Plan:
    name = field.name
    if not dataclasses.is_dataclass(item):
        return _Plan(
            lambda value, message: getattr(message, name).extend(value),
            lambda message: tuple(getattr(message, name)),
        )
    cls = typing.cast(type, item)

    def write(value: Any, message: Any) -> None:
        items = getattr(message, name)
        for element in value:
            _fill(element, items.add())

    def read(message: Any) -> Any:
        plan = _plan(cls, stored)
        return tuple(plan.read(part) for part in getattr(message, name))

    return _Plan(write, read)


def _mapping(name: str) -> _Plan:
    return _Plan(
        lambda value, message: getattr(message, name).update(value),
        lambda message: dict(getattr(message, name)),
    )


def _instant(name: str) -> _Plan:
    def write(value: Any, message: Any) -> None:
        stamp = getattr(message, name)
        stamp.seconds, millis = divmod(value, 1000)
        stamp.nanos = millis * 1_000_000

    def read(message: Any) -> Any:
        if not message.HasField(name):
            return None
        stamp = getattr(message, name)
        return stamp.seconds * 1000 + stamp.nanos // 1_000_000

    return _Plan(write, read)


def _duration(name: str) -> _Plan:
    # A Duration has the fields of a Timestamp.
    return _instant(name)


def _oneof(descriptor: Descriptor, name: str, hint: Any, stored: bool) -> _Plan:
    members = {
        field.message_type.name: field.name
        for field in descriptor.oneofs_by_name[name].fields
        if field.message_type is not None
    }
    classes = {members[cls.__name__]: cls for cls in _members(hint)}
    names = {cls: field for field, cls in classes.items()}

    def write(value: Any, message: Any) -> None:
        part = getattr(message, names[type(value)])
        part.SetInParent()
        _fill(value, part)

    def read(message: Any) -> Any:
        which = message.WhichOneof(name)
        if which in classes:
            return _plan(classes[which], stored).read(getattr(message, which))
        if which is not None and stored:
            raise UnknownEventKind(f"the log holds a {which}, which is no event of the core")
        return None

    return _Plan(write, read)


def _members(hint: Any) -> list[type]:
    return [member for member in typing.get_args(hint) if member is not types.NoneType]


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        members = _members(hint)
        return members[0] if len(members) == 1 else hint
    return hint


@cache
def _descriptor(cls: type[Any]) -> Descriptor:
    for file in _FILES:
        found: Descriptor | None = file.DESCRIPTOR.message_types_by_name.get(cls.__name__)
        if found is not None:
            return found
    raise LookupError(f"the contract has no message {cls.__name__}")


@cache
def _enum_numbers(cls: type[Enum]) -> dict[Enum, int]:
    """Numbers by value: RunState.PENDING is RUN_STATE_PENDING."""
    found: EnumDescriptor | None = None
    for file in _FILES:
        found = found or file.DESCRIPTOR.enum_types_by_name.get(cls.__name__)
    if found is None:
        raise LookupError(f"the contract has no enum {cls.__name__}")
    prefix = found.values[0].name.removesuffix("UNSPECIFIED")
    return {value: found.values_by_name[prefix + value.name].number for value in cls}
