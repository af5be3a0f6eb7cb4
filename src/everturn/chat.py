"""The front door of the library: a `Chat` is one session, a `Turn` is what `send` returns.

There is one path and it streams: `async for event in turn` shows a turn as it happens, `await turn` collects it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from everturn.core.canonical import JsonObject, canonical, clean, clean_all, parse_object
from everturn.core.commands import Answer, Cancel, Delete, Select, Send
from everturn.core.deltas import Cursor, Reader, Shown
from everturn.core.events import (
    Gate,
    HistoryPolicy,
    LatePolicy,
    Problem,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnOptions,
    Verdict,
)
from everturn.core.hooks import HOOKS
from everturn.core.messages import Message
from everturn.core.parts import FilePart, Part, TextPart, Usage, last_text
from everturn.core.ports import Model, Store, Tool
from everturn.core.state import Phase, TurnState, fold
from everturn.core.tree import Tree
from everturn.errors import CommandRefused, ConfigError, HookError, TurnError, UnknownSession, UnknownTurn
from everturn.turn.driver import NEVER_BEGAN
from everturn.turn.run import Prompt, Settings
from everturn.wiring import Listener, Runtime

Input = str | Iterable[TextPart | FilePart]


class TurnResult(Struct, frozen=True):
    """A turn that is over. `messages` are its own: the input, the answers, what plugins appended."""

    turn: str
    phase: Phase
    messages: tuple[Message, ...]
    usage: Usage
    reports: tuple[Problem, ...] = ()

    @property
    def message(self) -> Message | None:
        """The last answer."""
        answers = [message for message in self.messages if message.role == "assistant"]
        return answers[-1] if answers else None

    @property
    def text(self) -> str:
        """What was said in the end: the text of the last answer's last step."""
        return last_text(self.message.parts) if self.message is not None else ""


class Reading:
    """A reader of a turn; `cursor` is where it is, and where another one can go on."""

    def __init__(self, runtime: Runtime, session: str, reader: Reader) -> None:
        self._reader = reader
        self._shown = runtime.follow(session, reader)

    @property
    def cursor(self) -> Cursor:
        """The place after what was shown last; `str(cursor)` can be kept anywhere."""
        return self._reader.cursor

    def __aiter__(self) -> Reading:
        """Read on."""
        return self

    async def __anext__(self) -> Shown:
        """Show what is next."""
        return await anext(self._shown)

    async def aclose(self) -> None:
        """Stop reading. The turn does not mind."""
        await self._shown.aclose()


class Turn:
    """A turn, to be watched, collected, answered or cancelled. It runs whether or not anybody does."""

    def __init__(self, runtime: Runtime, session: str, turn: str, key: str = "") -> None:
        self._runtime, self.session, self.id, self._key = runtime, session, turn, key

    def events(self, after: Cursor | str | None = None) -> Reading:
        """Show the turn from its beginning, or from a cursor."""
        cursor = Cursor.parse(after) if isinstance(after, str) else after
        return Reading(self._runtime, self.session, Reader(self.id, cursor))

    def __aiter__(self) -> Reading:
        """Show the turn as it happens: log events, and deltas between them."""
        return self.events()

    def __await__(self) -> Generator[Any, None, TurnResult]:
        """Wait until the turn is over, and collect it.

        Raises:
            TurnError: it ended in an error.
            ExceptionGroup: clean-ups failed; with the turn's own error, if it had one.
        """
        return self._collect().__await__()

    async def _collect(self) -> TurnResult:
        try:
            async for _ in self:
                pass
            entries = await self._runtime.store.events(self.session, turn=self.id)
        except UnknownSession:  # it begins with its first message
            entries = []
        if not entries:
            return await self._never_began()
        state = fold(entry.event for entry in entries)
        ended = next(
            entry.event for entry in entries if isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled)
        )
        own: TurnError | None = None
        if isinstance(ended, TurnFailed):
            own = (HookError if ended.problem.kind == "hook" else TurnError)(ended.problem.text, ended.problem.kind)
        failed: list[Exception] = [HookError(one.text, one.kind) for one in ended.reports if one.kind == "clean-up"]
        if failed:
            raise ExceptionGroup("clean-ups failed when the turn ended", [own, *failed] if own else failed)
        if own is not None:
            raise own
        return TurnResult(self.id, state.phase, tuple(state.messages.values()), ended.usage, ended.reports)

    async def _never_began(self) -> TurnResult:
        reason = await self._runtime.dropped(self.session, self._key) if self._key else None
        if reason is None:
            raise UnknownTurn(f"there is no turn {self.id!r} in this session")
        if reason != NEVER_BEGAN:
            raise CommandRefused(reason)
        return TurnResult(self.id, Phase.CANCELLED, (), Usage())

    async def state(self) -> TurnState:
        """The turn as its log tells it, now."""
        return fold(entry.event for entry in await self._runtime.store.events(self.session, turn=self.id))

    async def cancel(self, *, hard: bool = False, key: str | None = None) -> None:
        """End the turn. Its tools go on and their results come late, unless `hard` cancels them too."""
        runtime = self._runtime
        key = key or runtime.ids.new("cmd")
        await runtime.command(Cancel(key=key, session=self.session, at=runtime.clock.now(), turn=self.id, hard=hard))

    async def answer(
        self,
        gate: Gate,
        *,
        allow: Literal["once"] | None = None,
        deny: str | bool | None = None,
        arguments: JsonObject | None = None,
        by: str = "person",
    ) -> None:
        """Answer a gate: `allow="once"`, with other `arguments` if you like, or `deny="a reason the model reads"`.

        Raises:
            BadArguments: the edited arguments do not fit the tool; nothing was answered.
            GateClosed, HashMismatch, UnknownGate: the answer was not taken.
        """
        await answer(self._runtime, self.session, gate, allow=allow, deny=deny, arguments=arguments, by=by)


async def answer(
    runtime: Runtime,
    session: str,
    gate: Gate,
    *,
    allow: Literal["once"] | None,
    deny: str | bool | None,
    arguments: JsonObject | None,
    by: str,
) -> None:
    """Hand in an answer; see `Turn.answer`."""
    if not isinstance(gate, Gate):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("answer the gate itself: event.gate, or one of chat.gates()")
    edited = ""
    is_denied = deny is not None and deny is not False
    # Strictly: allow=False, from somebody's checkbox, must not allow.
    if allow not in (None, "once") or (allow is None) == (not is_denied):
        raise ConfigError('a gate is answered with allow="once" or with deny=True or deny="the reason", one of them')
    if arguments is not None:
        if is_denied or not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("arguments are edited with a dict of them, when the call is allowed")
        edit: JsonObject = clean_all(arguments)
        if (tool := runtime.tools.get(gate.tool)) is not None:
            tool.validate(edit)
        edited = canonical(edit)
    verdict = Verdict(
        allowed=not is_denied,
        reason=clean(deny) if isinstance(deny, str) else "",
        arguments="" if edited == gate.arguments else edited,  # saying the same again is no edit
        by=by,
    )
    await runtime.command(
        Answer(
            key=runtime.ids.new("cmd"),
            session=session,
            at=runtime.clock.now(),
            gate=gate.id,
            hash=gate.hash,
            verdict=verdict,
        )
    )


class Chat:
    """A conversation with a model that may call tools: a session, and what it runs on.

    Everything else is a plugin, a wrapper around a model or a tool, or a field of `settings`.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        tools: Iterable[Tool] = (),
        plugins: Iterable[object] = (),
        system: str = "",
        session: str | None = None,
        store: Store | None = None,
        options: TurnOptions | None = None,
        settings: Settings | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        if isinstance(model, str):
            raise ConfigError(
                f"{model!r}: models by name are not there yet; pass an object with `name` and `stream`, "
                "for example everturn.testing.ScriptedModel"
            )
        if hasattr(tools, "spec") or any(hasattr(plugins, hook) for hook in HOOKS):
            raise ConfigError("tools and plugins are lists: tools=[search], plugins=[Timing()]")
        tools, plugins = list(tools), list(plugins)
        if isinstance(options, dict) or isinstance(settings, dict):
            raise ConfigError("options is a TurnOptions(...), settings is a Settings(...)")
        if runtime is None:
            if settings is not None and system:
                raise ConfigError("give `system`, or `settings` with a prompt of its own, not both")
            settings = settings or Settings(prompt=Prompt(agent=system))
            runtime = Runtime(model, tools=tools, plugins=plugins, store=store, settings=settings)
        elif tools or plugins or system or store is not None or settings is not None:
            raise ConfigError("a runtime brings its own tools, plugins, store and settings; give them to `Runtime`")
        self.runtime = runtime
        self.session = session or runtime.ids.new("session")
        self._options = _checked(options or TurnOptions())

    async def send(
        self,
        message: Input,
        *,
        after: str | Message | None = None,
        key: str | None = None,
        params: Mapping[str, Any] | None = None,
        history: HistoryPolicy | None = None,
        late: LatePolicy | None = None,
        max_steps: int | None = None,
    ) -> Turn:
        """Send a message at the end of the selected branch, or `after` a message, and start a turn.

        The message is safe when this returns. With the same `key` the same turn is returned, however often.
        """
        options = self._turn_options(params=params, history=history, late=late, max_steps=max_steps)
        return await self._send(_parts(message), None if after is None else _id(after), after is None, key, options)

    def _turn_options(self, **changed: Any) -> TurnOptions:
        given = {name: value for name, value in changed.items() if value is not None}
        if "params" in given:
            given["params"] = _params(given["params"])
        fields = {name: getattr(self._options, name) for name in TurnOptions.__struct_fields__}
        return _checked(TurnOptions(**{**fields, **given}))

    async def _send(
        self,
        parts: tuple[Part, ...] | None,
        parent: str | None,
        at_leaf: bool,
        key: str | None = None,
        options: TurnOptions | None = None,
    ) -> Turn:
        ids = self.runtime.ids
        command = Send(
            key=key or ids.new("cmd"),
            session=self.session,
            at=self.runtime.clock.now(),
            turn=ids.new("turn"),
            message=ids.new("msg") if parts is not None else "",
            parts=parts,
            parent=parent,
            at_leaf=at_leaf,
            options=options or self._options,
        )
        receipt = await self.runtime.command(command)
        assert isinstance(receipt.command, Send)
        return Turn(self.runtime, self.session, receipt.command.turn, receipt.command.key)

    def turn(self, turn: str) -> Turn:
        """A turn of this session, by its id: to follow it again, or from another process."""
        return Turn(self.runtime, self.session, turn)

    # The tree ----------------------------------------------------------------------------------------------------

    async def rerun(self, message: str | Message) -> Turn:
        """Answer again: a new version beside an answer, or another answer to a message of the person's."""
        found = (await self.tree()).get(_id(message))
        return await self._send(None, found.parent if found.role == "assistant" else found.id, at_leaf=False)

    async def edit(self, message: str | Message, text: Input) -> Turn:
        """Say it differently: a new version beside a message of the person's, and an answer to it."""
        found = (await self.tree()).get(_id(message))
        if found.role != "user":
            raise ConfigError("edit is for what a person wrote; rerun gives another answer")
        return await self._send(_parts(text), found.parent, at_leaf=False)

    async def insert(self, after: str | Message, text: Input) -> Turn:
        """Say something after an earlier message: a new branch, beside whatever followed there."""
        return await self._send(_parts(text), _id(after), at_leaf=False)

    async def fork(self, message: str | Message | None) -> None:
        """Go on from an earlier message (None: from the beginning): the next `send` starts a branch there."""
        to = None if message is None else _id(message)
        await self._tell(Select(key=self._key(), session=self.session, at=self.runtime.clock.now(), message=to))

    switch = fork

    async def delete(self, message: str | Message) -> None:
        """Hide a message and everything under it."""
        gone = (await self.tree()).get(_id(message)).id
        await self._tell(Delete(key=self._key(), session=self.session, at=self.runtime.clock.now(), message=gone))

    def _key(self) -> str:
        return self.runtime.ids.new("cmd")

    async def _tell(self, command: Select | Delete) -> None:
        await self.runtime.command(command)
        await self.runtime.acted_on(command)

    async def tree(self) -> Tree:
        """All messages of the session."""
        try:
            return await self.runtime.store.tree(self.session)
        except UnknownSession:  # it begins with its first message
            return Tree()

    async def messages(self, leaf: str | Message | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first."""
        store = self.runtime.store
        try:
            path = await store.path(self.session, _id(leaf) if leaf else (await store.info(self.session)).leaf)
        except UnknownSession:  # it begins with its first message
            return []
        return [message for message in path if not message.hidden]

    # Around it -----------------------------------------------------------------------------------------------------

    async def gates(self) -> list[Gate]:
        """The questions that wait for a person in this session."""
        try:
            return [row.gate for row in await self.runtime.store.gates(self.session)]
        except UnknownSession:  # it begins with its first message
            return []

    async def answer(
        self,
        gate: Gate,
        *,
        allow: Literal["once"] | None = None,
        deny: str | bool | None = None,
        arguments: JsonObject | None = None,
        by: str = "person",
    ) -> None:
        """Answer a gate; see `Turn.answer`."""
        await answer(self.runtime, self.session, gate, allow=allow, deny=deny, arguments=arguments, by=by)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every phase a turn enters, before its work starts; returns how to stop."""

        def mine(snapshot: Any) -> None:
            if snapshot.session == self.session:
                listener(snapshot)

        self.runtime.listeners.append(mine)
        return lambda: self.runtime.listeners.remove(mine) if mine in self.runtime.listeners else None

    async def __aenter__(self) -> Chat:
        """Start, and go on with whatever the store has unfinished."""
        await self.runtime.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop driving; nothing in the store is lost by it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Stop driving; nothing in the store is lost by it."""
        await self.runtime.aclose()


def _checked(options: TurnOptions) -> TurnOptions:
    """Options that make sense; others are refused before anything is admitted."""
    if options.max_steps < 1:
        raise ConfigError(f"max_steps={options.max_steps}: a turn needs at least one step")
    if options.history not in get_args(HistoryPolicy):
        raise ConfigError(f"history={options.history!r}; there are: {', '.join(get_args(HistoryPolicy))}")
    if options.late not in get_args(LatePolicy):
        raise ConfigError(f"late={options.late!r}; there are: {', '.join(get_args(LatePolicy))}")
    return options


def _id(message: str | Message) -> str:
    return message.id if isinstance(message, Message) else message


def _params(params: Mapping[str, Any]) -> dict[str, object]:
    """Parameters as they are kept: plain JSON, or refused before anything is admitted."""
    try:
        return parse_object(canonical(clean_all(dict(params)))) or {}
    except Exception as error:
        raise ConfigError(f"params must be plain JSON: {error}") from None


def _parts(message: Input) -> tuple[Part, ...]:
    given = [TextPart(message)] if isinstance(message, str) else message
    if isinstance(given, Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("a message is a text, or a list of TextPart(...) and FilePart(...)")
    parts: list[Part] = []
    for part in given:
        if not isinstance(part, TextPart | FilePart):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a message is a text, or a list of TextPart(...) and FilePart(...), not of {part!r}")
        if isinstance(part, FilePart) or part.text:
            parts.append(TextPart(clean(part.text)) if isinstance(part, TextPart) else part)
    if not parts:
        raise ConfigError("there is nothing to send: the message is empty")
    return tuple(parts)
