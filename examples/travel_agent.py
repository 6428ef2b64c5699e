"""An agent of Pydantic AI as it is: nothing in it knows of Turngate (docs/agents.md)."""

from pydantic_ai import Agent, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

SEAT = ToolDefinition(name="pick_seat", description="Lets the user pick a seat on a map.")
agent = Agent("openai:gpt-5", name="travel", toolsets=[ExternalToolset([SEAT])])


@agent.tool_plain
def find_trains(city: str) -> list[str]:
    """Trains to a city."""
    return [f"07:02 to {city}", f"09:32 to {city}"]


@agent.tool_plain(requires_approval=True)
def book(train: str, seat: str) -> str:
    """Books a seat on a train."""
    return f"booked {seat} on {train}"
