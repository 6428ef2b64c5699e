"""Who is told: the targets of webhooks, from the operator's file (P3). Never from a session.

```toml
[[target]]
name = "ops"
url = "https://hooks.example.com/turngate"
secrets = ["file:/run/secrets/turngate-ops"]
```
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from turngate_serving.toml_file import read_toml

OPENED: Literal["interaction.opened"] = "interaction.opened"
CLOSED: Literal["interaction.closed"] = "interaction.closed"
EventType = Literal["interaction.opened", "interaction.closed"]

SECRET_BYTES = range(24, 65)
"""How long a signing key may be, by the Standard Webhooks specification."""

_SECRET_PREFIX = "whsec_"
_PLACEHOLDERS = ("{tenant_id}", "{session_id}", "{interaction_id}")


@dataclass(frozen=True, slots=True)
class Target:
    """One receiver. `tenants`: whose sessions it is told of; None for all. `link`: the operator's
    template of links; empty for that of the session.
    """

    name: str
    url: str = field(repr=False)  # may be a secret by itself
    secrets: tuple[bytes, ...] = field(repr=False)
    events: frozenset[EventType] = frozenset({OPENED, CLOSED})
    tenants: frozenset[str] | None = None
    link: str = ""

    def link_for(self, tenant_id: str, session_id: str, interaction_id: str) -> str:
        """The operator's link to a question; empty without a template."""
        link = self.link
        for placeholder, value in zip(
            _PLACEHOLDERS, (tenant_id, session_id, interaction_id), strict=True
        ):
            link = link.replace(placeholder, quote(value, safe=""))
        return link


def read_targets(path: Path) -> tuple[Target, ...]:
    """The targets of a file. Raises StartError with the place of what is wrong."""
    return tuple(
        Target(
            given.name,
            given.url,
            tuple(given.secrets),
            frozenset(given.events),
            frozenset(given.tenants) if given.tenants else None,
            given.link,
        )
        for given in read_toml(path, _File).target
    )


def _secret(given: object, info: ValidationInfo) -> bytes:
    """The key of `whsec_…`, `file:PATH` or `env:NAME`. What is said never has a part of it."""
    if not isinstance(given, str):
        raise ValueError("has to be text")
    text, where = given, "it"
    if given.startswith("env:"):
        where = f"the variable {given[4:]}"
        if (found := os.environ.get(given[4:])) is None:
            raise ValueError(f"{where} is not set")
        text = found
    elif given.startswith("file:"):
        folder: Path = info.context["folder"] if info.context else Path()
        path = folder / given[5:]
        where = f"the file {path}"
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"cannot read {where}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{where} is no UTF-8 text") from None
    text = text.strip()
    unpadded = text.removeprefix(_SECRET_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(_SECRET_PREFIX) or len(key) not in SECRET_BYTES:
        raise ValueError(
            f"{where} has to be {_SECRET_PREFIX} and then the base64 of"
            f" {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes"
        )
    return key


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("has to be an https:// URL")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("has to be percent-encoded: it has letters that no URL has")
    if "@" in parts.netloc:
        raise ValueError("has to be without a user: receivers know Turngate by its signature")
    if parts.fragment:
        raise ValueError("has to be without a #fragment: it would not be sent")
    return url


def _link(link: str) -> str:
    for found in re.findall(r"\{[^}]*\}?", link):
        if found not in _PLACEHOLDERS:
            raise ValueError(f"knows {', '.join(_PLACEHOLDERS)} only")
    return link


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class _Target(_Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
    url: Annotated[str, Field(max_length=2048), AfterValidator(_url)]
    secrets: Annotated[
        list[Annotated[bytes, BeforeValidator(_secret)]], Field(min_length=1, max_length=4)
    ]
    events: Annotated[list[EventType], Field(min_length=1)] = [OPENED, CLOSED]
    tenants: Annotated[list[str], Field(min_length=1)] | None = None
    link: Annotated[str, Field(max_length=2048), AfterValidator(_link)] = ""
    allow_http: bool = False

    @model_validator(mode="after")
    def _encrypted(self) -> _Target:
        parts = urlsplit(self.url)
        if parts.scheme == "http" and not self.allow_http and not _loopback(parts.hostname or ""):
            raise ValueError(
                "url has to be https: what is sent could be read on the way (or say allow_http)"
            )
        return self


class _File(_Strict):
    target: Annotated[list[_Target], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _told_apart(self) -> _File:
        names = [target.name for target in self.target]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two targets are called {name}")
        return self


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
