"""`turngate demo` and `turngate up` as a person starts them: with the two real services."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

COMMAND = (sys.executable, "-c", "from turngate_client.cli import main; main()")
SECONDS = 60

# A second try for the city, for the nights and for the verdict.
ANSWERS = b"\nVisby\nmany\n3\nDouble\n\nperhaps\ny\nlooks good\n"


@asynccontextmanager
async def turngate(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command as a process of its own; it is gone at the end of the test in any case."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.communicate(), SECONDS)


async def finished(process: asyncio.subprocess.Process, stdin: bytes) -> tuple[int, str, str]:
    """Exit code, output and errors of a command that gets this input."""
    output, errors = await asyncio.wait_for(process.communicate(stdin), SECONDS)
    return process.returncode or 0, output.decode(), errors.decode()


async def read_until(process: asyncio.subprocess.Process, pattern: str) -> re.Match[str]:
    """What the pattern finds in the next lines of the output."""
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        async for line in process.stdout:
            if found := re.search(pattern, line.decode()):
                return found
    raise AssertionError(f"the output ended without {pattern!r}")


async def children_of(pid: int) -> list[str]:
    """The processes that a process has started and that are still there."""
    table = await asyncio.create_subprocess_exec(
        "ps", "-A", "-o", "pid=,ppid=,args=", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await table.communicate()
    rows = [line.split(None, 2) for line in output.decode().splitlines()]
    return [row[0] for row in rows if row[1] == str(pid) and "_service" in row[2]]


async def are_gone(pids: list[str]) -> bool:
    """None of these processes is there any more."""
    table = await asyncio.create_subprocess_exec(
        "ps", "-A", "-o", "pid=", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await table.communicate()
    return not set(pids) & set(output.decode().split())


async def test_the_demo_with_piped_answers_shows_the_whole_conversation() -> None:
    async with turngate("demo") as process:
        code, output, errors = await finished(process, ANSWERS)
    assert (code, errors) == (0, "")
    in_order = [
        "user: I would like to go on a trip to the sea.",
        "agent: A trip, good.",
        "→ request_input",
        "render hint for call_",  # H1: beside the call
        "OPEN  call of request_input",
        "PARKED",
        "HELD INTERACTION_OPEN",  # G1: what is sent meanwhile waits
        "INVALID_ANSWER output.content.city: is required",  # F1: by the broker itself
        "? City: \n  is required\n? City: Visby",  # a second try
        "must be a number",
        'answer: {"action":"accept","content":{"city":"Visby","nights":3,"room":"double"',
        "a fork, goes on with the answer; it supersedes",  # F2
        "is HELD RUN_ACTIVE",  # G2: the hold follows the fork
        "agent: Visby for 3 nights",
        "OPEN  approval of book_hotel",
        "must be y or n",
        "APPROVED",
        '"booked":true',
        "agent: It is booked: 3 nights in Visby.",
        "user: Is breakfast included?  (was held, enters now)",
        'agent: You wrote "Is breakfast included?".',
        "session demo-",
        "PARKED (prompt, superseded by run_",
        "! approved by local: looks good",
        "grpcurl -plaintext -d",
    ]
    place = 0
    for text in in_order:
        found = output.find(text, place)
        assert found >= 0, f"{text!r} is missing after: …{output[max(0, place - 200) : place]}"
        place = found
    assert "\x1b" not in output, "no colours in a pipe"


async def test_the_demo_without_any_answer_declines_and_ends_well() -> None:
    async with turngate("demo") as process:
        code, output, errors = await finished(process, b"")
    assert (code, errors) == (0, "")
    assert '"note":"Nobody filled the form in: the input has ended."' in output
    assert "agent: No details, no trip." in output
    assert "(was held, enters now)" in output


async def test_a_signal_in_the_middle_stops_both_services() -> None:
    async with turngate("demo") as process:
        await read_until(process, "INVALID_ANSWER output.content.nights")  # it asks, input is open
        services = await children_of(process.pid)
        assert len(services) == 2
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), SECONDS) == 130
        assert await are_gone(services)


async def test_up_serves_until_a_signal_and_tells_when_a_service_dies(tmp_path: Path) -> None:
    free = ("--listen", "127.0.0.1:0", "--runner-listen", "127.0.0.1:0")
    async with turngate("up", *free, "--store", f"sqlite:{tmp_path}/a.db") as process:
        await read_until(process, "turngate demo --broker")
        services = await children_of(process.pid)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), SECONDS) == 0
        assert len(services) == 2
        assert await are_gone(services)
    async with turngate("up", *free, "--store", f"sqlite:{tmp_path}/b.db") as process:
        await read_until(process, "turngate demo --broker")
        services = await children_of(process.pid)
        kill = await asyncio.create_subprocess_exec("kill", "-9", services[-1])
        await kill.wait()
        code, _, errors = await finished(process, b"")
        assert code == 1
        assert "has ended with exit code -9" in errors
        assert await are_gone(services)


async def test_up_on_a_taken_port_ends_with_2(tmp_path: Path) -> None:
    holder = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = holder.sockets[0].getsockname()[1]
    store = f"sqlite:{tmp_path}/c.db"
    flags = ("--listen", f"127.0.0.1:{port}", "--runner-listen", "127.0.0.1:0", "--store", store)
    async with holder, turngate("up", *flags) as process:
        code, _, errors = await finished(process, b"")
    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in errors


async def test_the_printed_grpcurl_lines_work_against_up(tmp_path: Path, grpcurl: str) -> None:
    """Scenario 14: as they are, pasted as one block."""
    flags = ("--listen", "127.0.0.1:0", "--runner-listen", "127.0.0.1:0")
    async with turngate("up", *flags, "--store", f"sqlite:{tmp_path}/d.db") as up:
        address = (await read_until(up, r"^broker +(\S+)")).group(1)
        async with turngate("demo", "--broker", address) as demo:
            code, output, _ = await finished(demo, ANSWERS)
        assert code == 0
        lines = [line for line in output.splitlines() if line.startswith(("grpcurl ", "until ID"))]
        script = ["set -eu", 'PATH="$1:$PATH"']
        for line in lines:
            if "WatchSession" in line:
                line = f"{line.replace('grpcurl', 'grpcurl -max-time 2', 1)}\n"
                script.append("set +e")
            script.append(line)
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-c", "\n".join(script), "by-hand", str(Path(grpcurl).parent)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, problems = await asyncio.wait_for(shell.communicate(), SECONDS)
    assert len(lines) == 12, problems.decode()
    shown = said.decode()
    for text in (
        "turngate.v1.BrokerService.SettleToolCall",
        '"outcome": "SEND_OUTCOME_STARTED"',
        '"outcome": "SEND_OUTCOME_HELD"',
        '"tool_name": "request_input"',
        '"fork_opened": true',
        '"state": "INTERACTION_STATE_APPROVED"',
        '"superseded_run_id"',
        '"prompt_added"',
    ):
        assert text in shown, problems.decode()
