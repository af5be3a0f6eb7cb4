"""A configuration and what a command line adds to it → a chat in this process, ready for one message."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from everturn import Chat, Runtime, TextPart, Turn
from everturn.cli.run_reading import config_file
from everturn.config.building import agents_of
from everturn.config.demo import demo_tools
from everturn.config.loading import Loaded, load
from everturn.config.models import make_model, usual_model
from everturn.config.tools import bring as bring_configured
from everturn.config.trouble import nearest
from everturn.core.canonical import clean
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart
from everturn.core.policy import Policy, Rule
from everturn.core.ports import Model
from everturn.errors import ConfigError
from everturn.models.named import named
from everturn.models.offline import OFFLINE
from everturn.models.vendors import VENDORS
from everturn.permissions.compact import read_compact
from everturn.permissions.reading import load_rules
from everturn.terminal.leftovers import left_unfinished
from everturn.terminal.loading import load_tools, read_budget, tools_in
from everturn.terminal.offered import tell_unwell
from everturn.terminal.paths import check
from everturn.terminal.paths import named as named_files
from everturn.terminal.reaching import TICK, Reach, bring
from everturn.turn.permit import DOOM_LOOP

COMING: Final = 15.0  # seconds for servers to come before the message is sent
NO_MODEL: Final = (
    "which model? For example --model openai:gpt-5.2 with OPENAI_API_KEY set, or --model llama3 --base-url "
    "http://127.0.0.1:11434/v1 for a server of your own; `everturn` in a terminal finds one and writes it down"
)
WILD: Final = "*?\\"
Tell = Callable[[str], None]


class Here(Struct, frozen=True):
    """A chat in this process; `allowed` are the rules that were given to allow something."""

    chat: Chat
    options: TurnOptions
    allowed: tuple[Rule, ...]
    make_model: Callable[[str], Model]
    files: tuple[Path, ...]

    async def send(self, text: str, key: str) -> Turn:
        """Send the message, with its files."""
        files = [await self._attached(path) for path in self.files]
        parts: list[TextPart | FilePart] = [*([TextPart(clean(text))] if text else []), *files]
        return await self.chat.send(parts, key=key or None, alone=True)

    async def _attached(self, path: Path) -> FilePart:
        try:
            return await self.chat.attach(path, name=clean(path.name))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None

    async def at_rest(self) -> None:
        """Wait until all that was asked of the session is done: a cancellation may come after the end of its turn."""
        store = self.chat.runtime.store
        while (await store.info(self.chat.session)).is_awake:  # noqa: ASYNC110 - the log does not tell of it
            await asyncio.sleep(TICK)

    async def unfinished(self) -> list[Turn]:
        """What was left unfinished in the session, oldest first.

        Raises:
            ConfigError: there is no such session.
        """
        left = await left_unfinished(self.chat, self.make_model)
        if left is None:
            raise ConfigError(f"there is no session {self.chat.session!r} in this store")
        return left


@asynccontextmanager
async def open_here(options: argparse.Namespace, tell: Tell) -> AsyncGenerator[Here]:
    """A chat as it is configured and asked for, until the block ends.

    Raises:
        ConfigError: something of it cannot be had here; nothing was sent.
    """
    loaded = load(config_file(options))
    spec, name = agent_of(loaded, clean(options.agent), clean(options.model))
    find_model = finder(loaded, name, options.base_url)
    model = _found(find_model, name, spec, loaded, options)
    files = tuple(named_files(tuple(options.attach)))
    for path in files:
        check(path)
    parts = await assemble(loaded, spec, options, tell, is_demo=name == OFFLINE)
    runtime = parts.runtime(model, options.store)
    try:
        await runtime.start()
        await settle(parts.tools, tell)
        check_rules((*parts.allowed, *parts.denied), runtime)
        chat = Chat(model, runtime=runtime, session=_session(options), options=parts.options)
        yield Here(chat, replace(parts.options, model=model.name), parts.allowed, find_model, files)
    finally:
        await runtime.aclose()


class Parts(Struct, frozen=True):
    """What a configuration and a command line come to: whoever runs a turn and whoever explains one have the same."""

    tools: list[Any]
    plugins: list[Any]
    rules: list[Rule]
    options: TurnOptions
    allowed: tuple[Rule, ...]
    denied: tuple[Rule, ...]

    def runtime(self, model: Model, store: str) -> Runtime:
        """A runtime of them."""
        return Runtime(model, tools=self.tools, plugins=self.plugins, rules=self.rules, store=store or None)


async def assemble(
    loaded: Loaded, spec: TurnOptions, options: argparse.Namespace, tell: Tell, *, is_demo: bool = False
) -> Parts:
    """The tools, the rules of every layer, and the options of the agent, with what the command line says beside them.

    Raises:
        ConfigError: something of it cannot be had here.
    """
    allowed, denied = _rules(options)
    configured = await asyncio.to_thread(bring_configured, loaded, os.environ, True)
    extra = load_tools(options.tools)
    reach = Reach(options.files, options.virtual_files, options.code, options.shell, options.web, tuple(options.mcp))
    brought = await bring(reach, tell, None)
    return Parts(
        [*configured.tools, *(demo_tools() if is_demo else ()), *extra, *brought.tools],
        [*configured.plugins, *brought.plugins],
        [*loaded.rules, *(load_rules(options.permissions) if options.permissions else ())],
        _options(spec, options, (*allowed, *denied), [*extra, *brought.tools]),
        allowed,
        denied,
    )


def finder(loaded: Loaded, first: str, base_url: str) -> Callable[[str], Model]:
    """What finds models by their names: those that are configured, and those of vendors. A server is that of the first."""

    def find(wanted: str) -> Model:
        if wanted in loaded.config.models and not base_url:
            return make_model(wanted, loaded.config.models[wanted], os.environ)
        # The server that was named is that of one vendor, or of none; the others have their own.
        return named(wanted, base_url=base_url if _vendor(wanted) in ("", _vendor(first)) else "")

    return find


def agent_of(loaded: Loaded, agent: str, model: str) -> tuple[TurnOptions, str]:
    """The options of the agent that is meant ("": the first one), and the name of its model.

    Raises:
        ConfigError: there is no such agent, or nobody has named a model.
    """
    spec = options_of(loaded, agent)
    name = model or spec.model or usual_model(os.environ)
    if name == OFFLINE and OFFLINE not in (model, spec.model, os.environ.get("EVERTURN_MODEL", "").strip()):
        raise ConfigError(NO_MODEL)  # a script must not take what the demo says for an answer
    return spec, name


def options_of(loaded: Loaded, agent: str) -> TurnOptions:
    """The options of the agent that is meant ("": the first one).

    Raises:
        ConfigError: there is no such agent.
    """
    agents = {agent.name: agent for agent in agents_of(loaded, "")}
    wanted = agent or next(iter(agents))
    if wanted not in agents:
        raise ConfigError(f"--agent {wanted}: there is no agent of this name; {nearest(wanted, agents)}")
    return agents[wanted].options


def _found(
    find: Callable[[str], Model], name: str, spec: TurnOptions, loaded: Loaded, options: argparse.Namespace
) -> Model:
    """The model; what is wrong with it is said with the line that names it."""
    try:
        return find(name)
    except ConfigError as error:
        if options.model or name != spec.model:
            raise
        raise ConfigError(f"{loaded.tree.where(('agents', spec.agent, 'model'))}: {error}") from None


def _vendor(name: str) -> str:
    return name.partition(":")[0] if name.partition(":")[0] in VENDORS else ""


def _rules(options: argparse.Namespace) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    allowed = tuple(read_compact(clean(text), "allow", "--allow") for text in options.allow)
    return allowed, tuple(read_compact(clean(text), "deny", "--deny") for text in options.deny)


def check_rules(rules: Iterable[Rule], runtime: Runtime) -> None:
    """Refuse a rule that is about nothing that is there: a deny that is misspelt would deny nothing.

    Raises:
        ConfigError: and it says what there is.
    """
    for rule in rules:
        if rule.tool == DOOM_LOOP:
            continue
        if any(char in WILD for char in rule.tool):
            _check_wild(rule, runtime)
            continue
        tool = runtime.tools.get(rule.tool)
        if tool is None:
            there = nearest(rule.tool, runtime.tools)
            raise ConfigError(f"{rule.source} {rule.tool}: there is no tool of this name; {there}")
        known = _known(tool)
        for name in rule.match:
            if name not in tool.spec.subjects and name.partition(".")[0] not in known:
                there = nearest(name, dict.fromkeys((*tool.spec.subjects, *known)))
                raise ConfigError(f"{rule.source} {rule.tool}: it has no argument {name!r}; {there}")


def _check_wild(rule: Rule, runtime: Runtime) -> None:
    """The same for a pattern of names: it is about some tool, and one that has these arguments."""
    tools = [tool for name, tool in runtime.tools.items() if Policy([Rule(rule.tool, rule.action)]).fitting(name, {})]
    if not tools:
        raise ConfigError(
            f"{rule.source} {rule.tool}: there is no tool of such a name; there are: {', '.join(runtime.tools) or 'none'}"
        )
    for name in rule.match:
        if not any(name in tool.spec.subjects or name.partition(".")[0] in _known(tool) for tool in tools):
            there = nearest(name, dict.fromkeys(one for tool in tools for one in (*tool.spec.subjects, *_known(tool))))
            raise ConfigError(f"{rule.source} {rule.tool}: none of these tools has an argument {name!r}; {there}")


def _known(tool: Any) -> Any:
    return tool.spec.schema.get("properties", {})


def _options(
    spec: TurnOptions, options: argparse.Namespace, rules: Sequence[Rule], extra: Iterable[Any]
) -> TurnOptions:
    """What the agent is told, and what the command line says instead, or beside it."""
    changed: dict[str, Any] = {"rules": (*spec.rules, *rules)}
    if options.system:
        changed["system"] = clean(options.system)
    if options.budget:
        changed["budget"] = read_budget(options.budget)
    if options.max_steps:
        changed["max_steps"] = options.max_steps
    if options.timeout:
        changed["timeout"] = options.timeout
    if spec.tools is not None:  # what is named on the command line is wanted, whatever the agent has otherwise
        changed["tools"] = (*spec.tools, *tools_in(one for one in extra if not hasattr(one, "aclose")))
    return replace(spec, **changed)


def _session(options: argparse.Namespace) -> str | None:
    """The session that is named; with a key alone, one that is found again by it."""
    if options.session or not options.idempotency_key:
        return clean(options.session) or None
    return f"run_{hashlib.sha256(clean(options.idempotency_key).encode()).hexdigest()[:32]}"


async def settle(tools: Iterable[Any], tell: Tell) -> None:
    """Wait for the tools of servers that are on their way, and say which of them do not come."""
    servers = [one for one in tools if hasattr(one, "status") and hasattr(one, "aclose")]
    for _ in range(int(COMING / TICK)):
        if all(status.state != "connecting" for one in servers for status in one.status()):
            break
        await asyncio.sleep(TICK)

    def told(text: str, *_: object) -> None:
        tell(text)

    for one in servers:
        tell_unwell(told, one.status())
