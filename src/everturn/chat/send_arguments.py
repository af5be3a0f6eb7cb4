"""Keyword arguments of `send` that `run` and `stream` pass on, and the error for one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from everturn.errors import unexpected_argument

if TYPE_CHECKING:
    from everturn.agents.definition import AgentDefinition
    from everturn.chat.comparison import ComparedModels
    from everturn.chat.turn import Turn
    from everturn.core.messages import Message
    from everturn.core.options import ClientTool, LatePolicy, StepLimitPolicy, ToolHistory
    from everturn.core.ports import Model
    from everturn.core.rate_limits import Priority


class SendArguments(TypedDict, total=False):
    """What a message can be sent with, besides `metadata` and `deps`; `Chat.send` says what each means."""

    after: str | Message | None
    key: str | None
    model: Model | str | None
    compare_with: ComparedModels
    params: Mapping[str, Any] | None
    tool_history: ToolHistory | None
    context: str | None
    late: LatePolicy | None
    max_steps: int | None
    tools: Iterable[str] | None
    clients: Iterable[ClientTool] | None
    alone: bool
    beside: str | Turn | None
    steer: bool | str | Turn
    by: str | None
    at: datetime | float | None
    priority: Priority | None
    at_step_limit: StepLimitPolicy | None


class ChatSendArguments(SendArguments, total=False):
    """The same in a conversation, where another agent may take the turn."""

    agent: AgentDefinition[Any] | str | None


KNOWN = (*ChatSendArguments.__annotations__, "metadata", "deps")


_CONVERSATION = "chat = agent.chat(), and then await chat.run(…) for each message: a chat keeps its history"
_OF_THE_AGENT = "it in Agent(…): it belongs to the agent"

NAMES_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("message_history", "history", "messages"), _CONVERSATION),
    **dict.fromkeys(("thread_id", "session_id", "conversation_id"), "session="),
    **dict.fromkeys(("temperature", "max_tokens", "top_p"), "params={…}: what the vendor's API takes"),
    **dict.fromkeys(("model_settings", "settings"), "params={…}: what the vendor's API takes"),
    **dict.fromkeys(("output_type", "instructions", "plugins", "rules", "timeout"), _OF_THE_AGENT),
    "usage_limits": "Agent(…, budget=Budget(cost=1.0, calls=40))",
    "budget": "Agent(…, budget=Budget(cost=1.0, calls=40))",
    "max_turns": "max_steps=",
    "idempotency_key": "key=",
    "user": "by=",
    "user_id": "by=",
}
"""What other libraries call an argument of `run`, and what to write here."""


def check_send_arguments(function: str, given: Iterable[str], more: Iterable[str] = ()) -> None:
    """Refuse an argument that `send` does not have, under the name of the function that was called.

    Raises:
        TypeError: an argument is unknown; the message suggests the nearest one.
    """
    for name in given:
        if name not in KNOWN:
            raise unexpected_argument(function, name, (*KNOWN, *more), NAMES_ELSEWHERE)
