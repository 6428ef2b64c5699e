"""A service process for the tests of start and stop. Arguments: address, grace, hook.

Prints its address once it listens. Hook `ends`: the drain ends the open streams; `hangs`: it
never returns; `fails`; `none`.
"""

import asyncio
import sys
from collections.abc import Coroutine

from tests.unit.serving.echo import SERVICE, Echo
from turngate_serving.exit import run_service
from turngate_serving.logs import configure_logs
from turngate_serving.server import Hook, build_server, serve_until_signal


def main() -> Coroutine[object, object, int]:
    address, grace, hook = sys.argv[1:]
    configure_logs("echo", "info")
    return serve(address, float(grace), hook)


async def serve(address: str, grace: float, hook: str) -> int:
    echo = Echo()

    async def ends() -> None:
        echo.stop.set()

    async def hangs() -> None:
        await asyncio.Event().wait()

    async def fails() -> None:
        raise RuntimeError("in a hook")

    hooks: dict[str, list[Hook]] = {
        "ends": [ends],
        "hangs": [hangs, ends],
        "fails": [fails, ends],
        "none": [],
    }
    server = await build_server(address, echo.register, [SERVICE])
    return await serve_until_signal(
        server,
        hooks=hooks[hook],
        hook_timeout_s=0.3,
        grace_s=grace,
        on_listening=lambda listening: print(listening, flush=True),
    )


if __name__ == "__main__":
    sys.exit(run_service("echo", main))
