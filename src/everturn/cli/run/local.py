"""Local chat for `everturn run`: a chat in this process, from the configuration and the options of the command line."""

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
from everturn.cli.config_options import config_file
from everturn.config.build import configured_agents
from everturn.config.demo_tools import demo_tools
from everturn.config.errors import nearest
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model, make_model
from everturn.config.tools import create_tools as bring_configured
from everturn.core.canonical_json import replace_surrogates
from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart
from everturn.core.ports import Model
from everturn.core.rules.policy import Policy, Rule
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model
from everturn.models.vendors import VENDORS
from everturn.permissions.rule_text import parse_rule
from everturn.permissions.rules_file import load_rules
from everturn.terminal.lines.tool_list import print_unhealthy_servers
from everturn.terminal.lines.unfinished_turns import resume_unfinished_turns
from everturn.terminal.text.local_tools import POLL_INTERVAL, LocalToolOptions, build_local_tools
from everturn.terminal.text.paths import check_paths as named_files
from everturn.terminal.text.paths import check_sendable
from everturn.terminal.text.tool_loader import load_tools, parse_budget, tools_in

MCP_CONNECT_TIMEOUT: Final = 15.0  # seconds for MCP servers to connect before the message is sent
NO_MODEL: Final = (
    "which model? For example --model openai:gpt-5.2 with OPENAI_API_KEY set, or --model llama3 --base-url "
    "http://127.0.0.1:11434/v1 for a server of your own; `everturn` in a terminal finds one and writes it down"
)
WILD: Final = "*?\\"
Tell = Callable[[str], None]


class LocalChat(Struct, frozen=True):
    """A chat in this process; `allowed` are the rules of --allow."""

    chat: Chat
    options: TurnOptions
    allowed: tuple[Rule, ...]
    make_model: Callable[[str], Model]
    files: tuple[Path, ...]

    async def send(self, text: str, key: str) -> Turn:
        """Send the message, with its files."""
        files = [await self._attached(path) for path in self.files]
        parts: list[TextPart | FilePart] = [*([TextPart(replace_surrogates(text))] if text else []), *files]
        return await self.chat.send(parts, key=key or None, alone=True)

    async def _attached(self, path: Path) -> FilePart:
        try:
            return await self.chat.attach(path, name=replace_surrogates(path.name))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None

    async def wait_until_idle(self) -> None:
        """Wait until the session has handled all its commands: a cancellation may arrive after the end of its turn."""
        store = self.chat.runtime.store
        while (await store.info(self.chat.session)).is_awake:  # noqa: ASYNC110 - the log does not tell of it
            await asyncio.sleep(POLL_INTERVAL)

    async def unfinished(self) -> list[Turn]:
        """Return the unfinished turns of the session, oldest first.

        Raises:
            ConfigError: there is no such session.
        """
        turns = await resume_unfinished_turns(self.chat, self.make_model)
        if turns is None:
            raise ConfigError(f"there is no session {self.chat.session!r} in this store")
        return turns


@asynccontextmanager
async def open_local_chat(options: argparse.Namespace, tell: Tell) -> AsyncGenerator[LocalChat]:
    """Open the chat that the configuration and the options describe, until the block ends.

    Raises:
        ConfigError: something of it is not available here; nothing was sent.
    """
    loaded = load_config(config_file(options))
    spec, name = resolve_agent(loaded, replace_surrogates(options.agent), replace_surrogates(options.model))
    find_model = make_model_finder(loaded, name, options.base_url)
    model = _find_model(find_model, name, spec, loaded, options)
    files = tuple(named_files(tuple(options.attach)))
    for path in files:
        check_sendable(path)
    parts = await assemble_run_parts(loaded, spec, options, tell, is_demo=name == OFFLINE)
    runtime = parts.runtime(model, options.store)
    try:
        await runtime.start()
        await wait_for_mcp_servers(parts.tools, tell)
        check_rules((*parts.allowed, *parts.denied), runtime)
        chat = Chat(model, runtime=runtime, session=_session(options), options=parts.options)
        yield LocalChat(chat, replace(parts.options, model=model.name), parts.allowed, find_model, files)
    finally:
        await runtime.aclose()


class RunParts(Struct, frozen=True):
    """Tools, plugins, rules and options of a run: `run` and `permissions explain` use the same."""

    tools: list[Any]
    plugins: list[Any]
    rules: list[Rule]
    options: TurnOptions
    allowed: tuple[Rule, ...]
    denied: tuple[Rule, ...]

    def runtime(self, model: Model, store: str) -> Runtime:
        """Build a runtime from these parts."""
        return Runtime(model, tools=self.tools, plugins=self.plugins, rules=self.rules, store=store or None)


async def assemble_run_parts(
    loaded: LoadedConfig, spec: TurnOptions, options: argparse.Namespace, tell: Tell, *, is_demo: bool = False
) -> RunParts:
    """Collect the tools, the rules of every layer and the options of the agent, with the additions of the command line.

    Raises:
        ConfigError: something of it is not available here.
    """
    allowed, denied = _rules(options)
    configured = await asyncio.to_thread(bring_configured, loaded, os.environ, True)
    extra = load_tools(options.tools)
    tool_options = LocalToolOptions(
        options.files, options.virtual_files, options.code, options.shell, options.web, tuple(options.mcp)
    )
    local_tools = await build_local_tools(tool_options, tell, None)
    return RunParts(
        [*configured.tools, *(demo_tools() if is_demo else ()), *extra, *local_tools.tools],
        [*configured.plugins, *local_tools.plugins],
        [*loaded.rules, *(load_rules(options.permissions) if options.permissions else ())],
        _options(spec, options, (*allowed, *denied), [*extra, *local_tools.tools]),
        allowed,
        denied,
    )


def make_model_finder(loaded: LoadedConfig, first: str, base_url: str) -> Callable[[str], Model]:
    """Return a function that finds models by name: configured ones and those of vendors.

    `base_url` belongs to the first model's vendor.
    """

    def find(wanted: str) -> Model:
        if wanted in loaded.config.models and not base_url:
            return make_model(wanted, loaded.config.models[wanted], os.environ)
        # --base-url is the server of one vendor, or of none; other vendors keep their own.
        return get_model(wanted, base_url=base_url if _vendor(wanted) in ("", _vendor(first)) else "")

    return find


def resolve_agent(loaded: LoadedConfig, agent: str, model: str) -> tuple[TurnOptions, str]:
    """Return the options of an agent ("": the first one), and the name of its model.

    Raises:
        ConfigError: there is no such agent, or no model is named.
    """
    spec = resolve_agent_options(loaded, agent)
    name = model or spec.model or default_model(os.environ)
    if name == OFFLINE and OFFLINE not in (model, spec.model, os.environ.get("EVERTURN_MODEL", "").strip()):
        raise ConfigError(NO_MODEL)  # a script must not take the demo's text for an answer
    return spec, name


def resolve_agent_options(loaded: LoadedConfig, agent: str) -> TurnOptions:
    """Return the options of an agent ("": the first one).

    Raises:
        ConfigError: there is no such agent.
    """
    agents = {agent.name: agent for agent in configured_agents(loaded, "")}
    wanted = agent or next(iter(agents))
    if wanted not in agents:
        raise ConfigError(f"--agent {wanted}: there is no agent of this name; {nearest(wanted, agents)}")
    return agents[wanted].options


def _find_model(
    find: Callable[[str], Model], name: str, spec: TurnOptions, loaded: LoadedConfig, options: argparse.Namespace
) -> Model:
    """Find the model; an error names the line of the configuration that names the model."""
    try:
        return find(name)
    except ConfigError as error:
        if options.model or name != spec.model:
            raise
        raise ConfigError(f"{loaded.tree.where(('agents', spec.agent, 'model'))}: {error}") from None


def _vendor(name: str) -> str:
    return name.partition(":")[0] if name.partition(":")[0] in VENDORS else ""


def _rules(options: argparse.Namespace) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    allowed = tuple(parse_rule(replace_surrogates(text), "allow", "--allow") for text in options.allow)
    return allowed, tuple(parse_rule(replace_surrogates(text), "deny", "--deny") for text in options.deny)


def check_rules(rules: Iterable[Rule], runtime: Runtime) -> None:
    """Refuse a rule that matches no tool: a misspelt deny rule would deny nothing.

    Raises:
        ConfigError: there is no such tool or argument; the text lists what exists.
    """
    for rule in rules:
        if rule.tool == LOOP_RULE_NAME:
            continue
        if any(char in WILD for char in rule.tool):
            _check_pattern(rule, runtime)
            continue
        tool = runtime.tools.get(rule.tool)
        if tool is None:
            suggestion = nearest(rule.tool, runtime.tools)
            raise ConfigError(f"{rule.source} {rule.tool}: there is no tool of this name; {suggestion}")
        known = _properties(tool)
        for name in rule.match:
            if name not in tool.spec.subjects and name.partition(".")[0] not in known:
                suggestion = nearest(name, dict.fromkeys((*tool.spec.subjects, *known)))
                raise ConfigError(f"{rule.source} {rule.tool}: it has no argument {name!r}; {suggestion}")


def _check_pattern(rule: Rule, runtime: Runtime) -> None:
    """Do the same for a pattern of names: some tool matches it, and one of them has these arguments."""
    tools = [
        tool for name, tool in runtime.tools.items() if Policy([Rule(rule.tool, rule.action)]).matching_rules(name, {})
    ]
    if not tools:
        raise ConfigError(
            f"{rule.source} {rule.tool}: there is no tool of such a name; there are: {', '.join(runtime.tools) or 'none'}"
        )
    for name in rule.match:
        if not any(name in tool.spec.subjects or name.partition(".")[0] in _properties(tool) for tool in tools):
            suggestion = nearest(
                name,
                dict.fromkeys(argument for tool in tools for argument in (*tool.spec.subjects, *_properties(tool))),
            )
            raise ConfigError(f"{rule.source} {rule.tool}: none of these tools has an argument {name!r}; {suggestion}")


def _properties(tool: Any) -> Any:
    return tool.spec.schema.get("properties", {})


def _options(
    spec: TurnOptions, options: argparse.Namespace, rules: Sequence[Rule], extra: Iterable[Any]
) -> TurnOptions:
    """Merge the options of the agent with those of the command line."""
    changed: dict[str, Any] = {"rules": (*spec.rules, *rules)}
    if options.system:
        changed["system"] = replace_surrogates(options.system)
    if options.budget:
        changed["budget"] = parse_budget(options.budget)
    if options.max_steps:
        changed["max_steps"] = options.max_steps
    if options.timeout:
        changed["timeout"] = options.timeout
    if spec.tools is not None:  # tools that the command line names are added to the agent's list
        changed["tools"] = (*spec.tools, *tools_in(tool for tool in extra if not hasattr(tool, "aclose")))
    return replace(spec, **changed)


def _session(options: argparse.Namespace) -> str | None:
    """Return the named session; with an idempotency key alone, one whose id derives from the key."""
    if options.session or not options.idempotency_key:
        return replace_surrogates(options.session) or None
    return f"run_{hashlib.sha256(replace_surrogates(options.idempotency_key).encode()).hexdigest()[:32]}"


async def wait_for_mcp_servers(tools: Iterable[Any], tell: Tell) -> None:
    """Wait for MCP servers that are connecting, and report those that do not connect."""
    servers = [server for server in tools if hasattr(server, "status") and hasattr(server, "aclose")]
    for _ in range(int(MCP_CONNECT_TIMEOUT / POLL_INTERVAL)):
        if all(status.state != "connecting" for server in servers for status in server.status()):
            break
        await asyncio.sleep(POLL_INTERVAL)

    def report(text: str, *_: object) -> None:
        tell(text)

    for server in servers:
        print_unhealthy_servers(report, server.status())
