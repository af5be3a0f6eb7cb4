"""Agent: the definition of an agent, and the methods that run it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar, Unpack, overload
from weakref import WeakKeyDictionary

from everturn.agents.definition import AgentDefinition, AgentOptions, OutputT
from everturn.app import App
from everturn.background_loop import BACKGROUND
from everturn.chat import Chat
from everturn.chat.result import RunResult
from everturn.chat.run import Run
from everturn.chat.send_arguments import SendArguments, check_send_arguments
from everturn.chat.validation import MessageInput
from everturn.core.ports import Model
from everturn.errors import unexpected_argument

T = TypeVar("T")

_VENDOR_PARAMS = "params={…}: what the vendor's API takes, such as params={'temperature': 0.2}"
_HANDED_TO_TOOLS = "tools=[…]: a list of functions, McpServers([…]), agent.as_tool() or handoff(agent)"

NAMES_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("system_prompt", "system", "prompt", "system_message"), "instructions="),
    **dict.fromkeys(("temperature", "max_tokens", "top_p", "seed", "model_settings", "model_kwargs"), _VENDOR_PARAMS),
    **dict.fromkeys(("toolsets", "mcp_servers", "mcp", "handoffs", "subagents", "sub_agents"), _HANDED_TO_TOOLS),
    **dict.fromkeys(("input_guardrails", "output_guardrails", "guardrails", "hooks", "middleware"), "plugins=[…]"),
    **dict.fromkeys(("deps_type", "dependencies"), "deps=: a factory of a TurnInfo that returns the dependencies"),
    **dict.fromkeys(("max_turns", "recursion_limit", "max_iterations"), "max_steps="),
    **dict.fromkeys(
        ("memory", "checkpointer", "store"), 'App(agents=[agent], store="talks.db"): the app has the store'
    ),
    **dict.fromkeys(("usage_limits", "max_cost"), "budget=Budget(cost=1.0, calls=40)"),
    **dict.fromkeys(("response_format", "response_model", "output_schema", "result_type"), "output_type="),
    "retries": "output_retries=, for answers that do not fit the output_type; get_model(…, retry=RetryPolicy(…)) for requests",
    "api_key": "Agent(get_model(…, key=…)), or set the environment variable of the vendor",
    "base_url": "Agent(get_model(…, base_url=…))",
}
"""What other libraries call an argument of an agent, and what to write here."""


class Agent(AgentDefinition[OutputT]):
    """An agent: model, instructions, tools, dependencies and output type under one name. It belongs to no app.

    `agent.run(…)` alone runs in memory; with `app=…`, `app.run(agent, …)` and `app.chat(…)` it is durable.
    """

    @overload
    def __init__(self: Agent[str], model: Model | str | None = None, **how: Unpack[AgentOptions]) -> None: ...
    @overload
    def __init__(
        self: Agent[T], model: Model | str | None = None, *, output_type: type[T], **how: Unpack[AgentOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any], model: Model | str | None = None, *, output_type: Any, **how: Unpack[AgentOptions]
    ) -> None: ...
    def __init__(self, model: Model | str | None = None, **how: Any) -> None:
        known = (*AgentOptions.__annotations__, "output_type")
        for name in how:
            if name not in known:
                raise unexpected_argument("Agent", name, known, NAMES_ELSEWHERE)
        super().__init__(model, **how)
        self._apps: WeakKeyDictionary[asyncio.AbstractEventLoop, App] = WeakKeyDictionary()

    def _app(self) -> App:
        """The private app of this agent in this event loop: its store is in memory."""
        loop = asyncio.get_running_loop()
        app = self._apps.get(loop)
        if app is None or app.is_closing:
            app = self._apps[loop] = App(agents=[self])
        return app

    async def run(
        self,
        message: MessageInput,
        *,
        app: App | None = None,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[SendArguments],
    ) -> RunResult[OutputT]:
        """Run the agent on a message; see `App.run`. Without an `app` nothing outlives the process.

        `deps` is an object for the tools of this run alone, where the store is in memory.

        Raises:
            TurnError: the turn failed; its `result` has the messages so far.
        """
        if app is not None:
            return await app.run(self, message, session=session, metadata=metadata, deps=deps, wait=wait, **how)
        app = self._app()
        chat = app.chat(session, agent=self)
        is_waiting = False
        try:
            result = await chat.run(message, metadata=metadata, deps=deps, wait=wait, **how)
            is_waiting = result.status == "waiting"
            return result
        finally:
            if session is None and not is_waiting:  # nobody can come back to it
                await app.forget_session(chat.session)

    def run_sync(
        self,
        message: MessageInput,
        *,
        app: App | None = None,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[SendArguments],
    ) -> RunResult[OutputT]:
        """`run` for code without an event loop."""
        check_send_arguments("run_sync", how, ("app", "session", "wait"))
        call = BACKGROUND.call if app is None else app.call_sync
        return call(self.run(message, app=app, session=session, metadata=metadata, deps=deps, wait=wait, **how))

    def stream(
        self,
        message: MessageInput,
        *,
        app: App | None = None,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        **how: Unpack[SendArguments],
    ) -> Run[OutputT]:
        """Run the agent, and show its turn as it happens: `async with agent.stream("…") as run`."""
        return (app or self._app()).stream(self, message, session=session, metadata=metadata, deps=deps, **how)

    def chat(self, session: str | None = None, *, app: App | None = None) -> Chat:
        """A conversation with this agent; without an `app` it lives as long as the event loop."""
        return (app or self._app()).chat(session, agent=self)
