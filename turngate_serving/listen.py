"""Where a server listens: checked before gRPC binds, whose own errors do not say what is wrong."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from turngate_serving.exit import StartError

_UNIX = "unix:"
_PORT = re.compile("[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """`port` 0: any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it. Names other than `localhost` may be anything."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket in the file system; its folder's permissions say who may connect."""

    path: Path

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}"


Address = TcpAddress | UnixAddress


def parse_address(text: str) -> Address:
    """`host:port`, `[v6]:port` or `unix:/path`. Raises `StartError`."""
    if text.startswith(_UNIX):
        path = text.removeprefix(_UNIX)
        if path:
            return UnixAddress(Path(path))
    else:
        host, colon, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if bracketed:
            host = host[1:-1]
        one_host = host and (bracketed or ":" not in host)
        if colon and one_host and _PORT.fullmatch(port) and int(port) <= 65535:
            return TcpAddress(host, int(port))
    raise StartError(
        f"cannot listen on {text!r}: not an address like 127.0.0.1:50051, [::1]:50051 or unix:/path"
    )


def check_exposure(address: Address, *, authenticated: bool) -> None:
    """Without authentication only this machine may reach the service (P2). Raises `StartError`."""
    if isinstance(address, TcpAddress) and not address.is_loopback and not authenticated:
        raise StartError(
            f"will not listen on {address}: no authentication is configured, and everybody who"
            " reaches that address could act for anybody; listen on 127.0.0.1, [::1], localhost"
            " or unix:/path"
        )


def check_free(address: Address) -> None:
    """Whether the address can be bound. Raises `StartError` with the system's reason."""
    if isinstance(address, UnixAddress):
        _check_free_path(address)
    elif address.port != 0:
        _check_free_port(address)


def _check_free_path(address: UnixAddress) -> None:
    # gRPC removes a socket file that is there: one that answers belongs to somebody.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(address.path))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                raise _cannot(address, error) from error
        else:
            raise StartError(f"cannot listen on {address}: another process listens there")


def _check_free_port(address: TcpAddress) -> None:
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise _cannot(address, error) from error
    absent: OSError | None = None
    bound = False
    for family, kind, protocol, _, where in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(where)
                bound = True
        except OSError as error:
            # A machine without IPv6 still has localhost.
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise _cannot(address, error) from error
            absent = error
    if absent is not None and not bound:
        raise _cannot(address, absent)


def _cannot(address: Address, error: OSError) -> StartError:
    return StartError(f"cannot listen on {address}: {error.strerror or error}")
