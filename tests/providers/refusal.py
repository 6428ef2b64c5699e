"""A request that the provider refuses, and reading a body into the types of its wire."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails


class Refused(Exception):
    """The provider's refusal: HTTP status, and the error object of the wire."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        super().__init__(message)


class Part(BaseModel):
    """A part of a request that has the fields of its class and no others, unconverted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OpenPart(BaseModel):
    """A part that the fakes let through: its type is known, the rest is not looked at."""

    model_config = ConfigDict(extra="allow", strict=True)


P = TypeVar("P", bound=BaseModel)


def read(
    body: dict[str, Any],
    into: type[P],
    let_through: Collection[str],
    refusal: Callable[[ErrorDetails], Refused],
) -> P:
    """The body as a typed request. `let_through` are known parameters that `into` has no rule for.

    Raises what `refusal` makes of the first error.
    """
    unseen = set(let_through) - set(into.model_fields)
    try:
        return into.model_validate({k: v for k, v in body.items() if k not in unseen})
    except ValidationError as error:
        raise refusal(_first(error.errors(include_url=False))) from error


def _first(errors: list[ErrorDetails]) -> ErrorDetails:
    # An unknown parameter is the least of several faults: a missing one says more.
    return next((e for e in errors if e["type"] != "extra_forbidden"), errors[0])
