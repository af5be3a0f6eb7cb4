"""App: what an application is made of: agents, a store, an engine, a bus, rules and budgets; it runs conversations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from everturn.agents.definition import AgentDefinition
from everturn.base_app import BaseApp
from everturn.chat import Chat, Turn
from everturn.chat.result import RunResult
from everturn.chat.run import Run
from everturn.chat.send_arguments import SendArguments, check_send_arguments
from everturn.chat.validation import MessageInput
from everturn.core.canonical_json import hash_values
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError
from everturn.schedules.schedules import Schedules
from everturn.webhooks.webhooks import Webhooks

if TYPE_CHECKING:
    from everturn.inbound_hooks.inbound_hooks import InboundHooks

T = TypeVar("T")


def session_of_key(agent: AgentDefinition[Any] | str, key: str | None) -> str | None:
    """The session of a run that has a key and names no session: the same in every process, so that a repeat finds it."""
    name = agent if isinstance(agent, str) else agent.name
    return f"run-{name}-{hash_values(key)[:32]}" if key else None


class App(BaseApp):
    """Runs agents: `App(agents=[support], store="postgresql://…")`. Everything it runs is durable in its store."""

    def chat(
        self,
        session: str | None = None,
        *,
        agent: AgentDefinition[Any] | str | None = None,
        options: TurnOptions | None = None,
        tenant: str = LOCAL,
    ) -> Chat:
        """A conversation: created by its first message, and the same again for the same `session`.

        `agent` says who begins; without it the app's first agent does. Later the agent that has the session continues
        it, after a handoff or `Chat.switch`; `await chat.agent()` says which.
        """
        if agent is None or isinstance(agent, str):
            if not self.agents:
                if agent:
                    raise ConfigError(f"unknown agent {agent!r}; this app has no agents: App(agents=[…])")
                return Chat("", app=self, session=session, options=options, tenant=tenant)
            agent = self.agents[self.binding(agent or "").name]  # as it was defined, whatever a test has overridden
        return Chat(agent, app=self, session=session, options=options, tenant=tenant)

    @overload
    async def run(
        self,
        agent: AgentDefinition[T],
        message: MessageInput,
        *,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[SendArguments],
    ) -> RunResult[T]: ...
    @overload
    async def run(
        self,
        agent: str,
        message: MessageInput,
        *,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[SendArguments],
    ) -> RunResult[Any]: ...
    async def run(
        self,
        agent: AgentDefinition[Any] | str,
        message: MessageInput,
        *,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[SendArguments],
    ) -> RunResult[Any]:
        """Run an agent on a message, in a new conversation or in `session`; `how` is as in `Chat.send`.

        With a `key` and no `session`, the conversation belongs to the key: the same key is the same run, in every process.
        Returns when the turn has ended, or waits for a person or another answer: see `RunResult.status`.

        Raises:
            TurnError: the turn failed.
        """
        asked = None if session is None else agent  # in a session of another agent, this one takes the turn
        chat = self.chat(session or session_of_key(agent, how.get("key")), agent=agent)
        return await chat.run(message, agent=asked, metadata=metadata, deps=deps, wait=wait, **how)

    def run_sync(
        self,
        agent: AgentDefinition[T],
        message: MessageInput,
        *,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[SendArguments],
    ) -> RunResult[T]:
        """`run` for code without an event loop: the app then lives in a loop of its own, in the background."""
        check_send_arguments("run_sync", how, ("session", "wait"))
        return self.call_sync(self.run(agent, message, session=session, metadata=metadata, deps=deps, wait=wait, **how))

    def stream(
        self,
        agent: AgentDefinition[T],
        message: MessageInput,
        *,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        **how: Unpack[SendArguments],
    ) -> Run[T]:
        """Run an agent, and show its turn as it happens: `async with app.stream(agent, "…") as run`."""
        check_send_arguments("stream", how, ("session", "app"))
        chat = self.chat(session or session_of_key(agent, how.get("key")), agent=agent)
        output = agent.current.output
        asked = None if session is None else agent
        return Run(
            lambda: chat.send(message, agent=asked, metadata=metadata, deps=deps, **how),
            None if output is None else output.parse_partial,
        )

    def turn(self, id: str, *, tenant: str = LOCAL) -> Turn:
        """A turn by its id, `result.id` of a run in any process: to follow it, or to wait for its result."""
        session, separator, turn = id.rpartition("/")
        if not separator:
            raise ConfigError(f"{id!r} is not the id of a run; result.id is, as 'session/turn'")
        return Turn(self, session, turn, tenant=tenant)

    @cached_property
    def schedules(self) -> Schedules:
        """Messages that start turns at planned times: create, list, pause, resume, run now, delete."""
        return Schedules(self)

    @cached_property
    def webhooks(self) -> Webhooks:
        """URLs that are told of events: create, list, rotate the secret, replay deliveries, delete."""
        return Webhooks(self)

    @cached_property
    def inbound_hooks(self) -> InboundHooks:
        """Signed requests of other systems that start turns or answer waiting ones: add, list, receive."""
        from everturn.inbound_hooks.inbound_hooks import InboundHooks  # only servers and services need it

        return InboundHooks(self)

    async def start(self) -> None:
        """Start driving: unfinished turns continue, schedules start what is due, and webhooks are told of events."""
        await super().start()
        self.schedules.scheduler.start()
        self.webhooks.sender.start()

    async def aclose(self) -> None:
        """Stop. Unfinished turns stay in the store, and continue when a process starts on it again."""
        await self.schedules.scheduler.aclose()
        await self.webhooks.sender.aclose()
        await super().aclose()

    async def __aenter__(self) -> App:
        """Start; unfinished turns of the store continue."""
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop driving; nothing in the store is lost."""
        await self.aclose()
