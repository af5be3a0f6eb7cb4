"""Local chat for `everturn run`: a chat in this process, from the configuration and the options of the command line."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn import App, Chat, TextPart, Turn
from everturn.agents.definition import AgentDefinition
from everturn.cli.config_options import config_file
from everturn.cli.model_option import resolve_model_option
from everturn.cli.run.folder import MODES, apply_run_options, find_run_folder, make_run_agent
from everturn.cli.run.run_store import RunApp, find_last_session
from everturn.config.agents import agent_tables, agents_reached_from, make_agents
from everturn.config.build import configured_settings
from everturn.config.demo_tools import demo_tools
from everturn.config.errors import nearest
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model, make_model
from everturn.config.tools import create_tools as bring_configured
from everturn.config.work_folder import work_folder
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
from everturn.running.drive_setup import TurnSettings
from everturn.terminal.lines.tool_list import print_unhealthy_servers
from everturn.terminal.lines.unfinished_turns import resume_unfinished_turns
from everturn.terminal.text.local_tools import POLL_INTERVAL, LocalToolOptions, build_local_tools
from everturn.terminal.text.paths import check_paths as named_files
from everturn.terminal.text.paths import check_sendable
from everturn.terminal.text.tool_loader import load_tools, parse_budget, tools_in

MCP_CONNECT_TIMEOUT: Final = 15.0  # seconds for MCP servers to connect before the message is sent
NO_MODEL: Final = (
    "which model? For example --model openai:gpt-5.2 with OPENAI_API_KEY set, or --model llama3 --base-url "
    "http://127.0.0.1:11434/v1 for a server of your own, or --model offline:demo to try Everturn without a model; "
    "`everturn` in a terminal finds one and saves it"
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
        store = self.chat.app.store
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
    loaded, schema = load_config(config_file(options)), load_output_schema(options.output_schema)
    resolve_model_option(options)
    folder = find_run_folder(options, loaded)
    agent, name = resolve_agent(loaded, replace_surrogates(options.agent), replace_surrogates(options.model))
    find_model = make_model_finder(loaded, name, options.base_url)
    model = _find_model(find_model, name, agent, loaded, options)
    files = tuple(named_files(tuple(options.attach)))
    for path in files:
        check_sendable(path)
    loaded = apply_run_options(loaded, agent, folder, schema)
    agents = make_agents_for(loaded, agent, model, find_model)
    parts = await assemble_run_parts(loaded, agents, options, tell, is_demo=name == OFFLINE)
    app = parts.app(model, options.store)
    if loaded.config.small_model:
        app.add_model(find_model(loaded.config.small_model))
    try:
        if folder is not None:
            definition, notes = await asyncio.to_thread(make_run_agent, folder, loaded, model, app)
            app.run_agent = app.add_agent(definition)
            parts = replace(parts, options=parts.options_of(definition, options))
            if options.verbose:
                for note in notes:
                    tell(note)
        await app.start()
        await wait_for_mcp_servers(parts.tools, tell)
        check_rules((*parts.allowed, *parts.denied), app)
        session = await find_last_session(app.store, parts.options.agent) if options.goes_on else _session(options)
        if session is not None:
            await app.drive(session)
        chat = Chat(model, app=app, session=session, options=parts.options)
        yield LocalChat(chat, replace(parts.options, model=model.name), parts.allowed, find_model, files)
    finally:
        await app.aclose()


def load_output_schema(file: str) -> dict[str, Any] | None:
    """Read the JSON Schema of --output-schema; None: the answer is any text.

    Raises:
        ConfigError: it cannot be read, or is not a JSON Schema.
    """
    if not file:
        return None
    try:
        schema: Any = msgspec.json.decode(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError(f"--output-schema {file} cannot be read: {error.strerror or error}") from None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"--output-schema {file} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise ConfigError(f'--output-schema {file} is not a JSON Schema; write an object such as {{"type": "object"}}')
    return cast("dict[str, Any]", schema)


class RunParts(Struct, frozen=True):
    """Agents, tools, plugins, rules and options of a run: `run` and `permissions explain` use the same."""

    agents: list[AgentDefinition[Any]]
    tools: list[Any]
    plugins: list[Any]
    rules: list[Rule]
    options: TurnOptions
    allowed: tuple[Rule, ...]
    denied: tuple[Rule, ...]
    settings: TurnSettings = TurnSettings()
    extra: tuple[Any, ...] = ()  # the tools that the command line adds

    def options_of(self, definition: AgentDefinition[Any], options: argparse.Namespace) -> TurnOptions:
        """Return the options of a turn of this agent, with the additions of the command line."""
        return make_turn_options(definition, options, (*self.allowed, *self.denied), self.extra)

    def app(self, model: Model, store: str) -> RunApp:
        """Build a runtime from these parts."""
        return RunApp(
            model,
            agents=self.agents,
            tools=self.tools,
            plugins=self.plugins,
            rules=self.rules,
            store=store or None,
            settings=self.settings,
        )


async def assemble_run_parts(
    loaded: LoadedConfig,
    agents: list[AgentDefinition[Any]],
    options: argparse.Namespace,
    tell: Tell,
    *,
    is_demo: bool = False,
) -> RunParts:
    """Collect the tools, the rules of every layer and the options of the agent, with the additions of the command line.

    The first of `agents` is the one that is run.

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
        agents,
        [*configured.tools, *(demo_tools() if is_demo else ()), *extra, *local_tools.tools],
        [*configured.plugins, *local_tools.plugins],
        [*loaded.rules, *(load_rules(options.permissions) if options.permissions else ())],
        make_turn_options(agents[0], options, (*allowed, *denied), [*extra, *local_tools.tools]),
        allowed,
        denied,
        configured_settings(loaded),
        (*extra, *local_tools.tools),
    )


def make_model_finder(loaded: LoadedConfig, first: str, base_url: str) -> Callable[[str], Model]:
    """Return a function that finds models by name: configured ones and those of vendors.

    `base_url` belongs to the first model's vendor.
    """

    def find(wanted: str) -> Model:
        if wanted in loaded.config.models and not base_url:
            return make_model(wanted, loaded.config.models[wanted], os.environ, loaded.config.models)
        # --base-url is the server of one vendor, or of none; other vendors keep their own.
        return get_model(wanted, base_url=base_url if _vendor(wanted) in ("", _vendor(first)) else "")

    return find


def resolve_agent(loaded: LoadedConfig, agent: str, model: str) -> tuple[str, str]:
    """Return the name of an agent ("": the first one), and that of its model.

    Raises:
        ConfigError: there is no such agent, or no model is named.
    """
    agent = find_agent(loaded, agent)
    written = agent_tables(loaded)[agent].model
    name = model or written or default_model(os.environ)
    if name == OFFLINE and OFFLINE not in (model, written, os.environ.get("EVERTURN_MODEL", "").strip()):
        raise ConfigError(NO_MODEL)  # a script must not take the demo's text for an answer
    return agent, name


def find_agent(loaded: LoadedConfig, agent: str) -> str:
    """Return the name of an agent; "" is the first one.

    Raises:
        ConfigError: there is no such agent.
    """
    agents = agent_tables(loaded)
    wanted = agent or next(iter(agents))
    if wanted not in agents:
        raise ConfigError(f"--agent {wanted}: there is no agent of this name; {nearest(wanted, agents)}")
    return wanted


def make_agents_for(
    loaded: LoadedConfig, agent: str, model: Model, find_model: Callable[[str], Model]
) -> list[AgentDefinition[Any]]:
    """Make an agent with this model, and those that it can call or hand over to.

    Raises:
        ConfigError: one of them cannot be made.
    """
    tables = agent_tables(loaded)
    names = agents_reached_from(tables, agent)
    models = {name: find_model(tables[name].model) if tables[name].model else model for name in names[1:]}
    made = make_agents(loaded, "", models={**models, agent: model}, only=names)
    return [made[name] for name in names]


def _find_model(
    find: Callable[[str], Model], name: str, agent: str, loaded: LoadedConfig, options: argparse.Namespace
) -> Model:
    """Find the model; an error names the line of the configuration that names the model."""
    try:
        return find(name)
    except ConfigError as error:
        if options.model or name != agent_tables(loaded)[agent].model:
            raise
        raise ConfigError(f"{loaded.tree.where(('agents', agent, 'model'))}: {error}") from None


def _vendor(name: str) -> str:
    return name.partition(":")[0] if name.partition(":")[0] in VENDORS else ""


def _rules(options: argparse.Namespace) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    allowed = tuple(parse_rule(replace_surrogates(text), "allow", "--allow") for text in options.allow)
    return allowed, tuple(parse_rule(replace_surrogates(text), "deny", "--deny") for text in options.deny)


def check_rules(rules: Iterable[Rule], app: App) -> None:
    """Refuse a rule that matches no tool: a misspelt deny rule would deny nothing.

    Raises:
        ConfigError: there is no such tool or argument; the text lists what exists.
    """
    for rule in rules:
        if rule.tool == LOOP_RULE_NAME:
            continue
        if any(char in WILD for char in rule.tool):
            _check_pattern(rule, app)
            continue
        tool = app.tools.get(rule.tool)
        if tool is None:
            suggestion = nearest(rule.tool, app.tools)
            raise ConfigError(f"{rule.source} {rule.tool}: there is no tool of this name; {suggestion}")
        known = _properties(tool)
        for name in rule.match:
            if name not in tool.spec.subjects and name.partition(".")[0] not in known:
                suggestion = nearest(name, dict.fromkeys((*tool.spec.subjects, *known)))
                raise ConfigError(f"{rule.source} {rule.tool}: it has no argument {name!r}; {suggestion}")


def _check_pattern(rule: Rule, app: App) -> None:
    """Do the same for a pattern of names: some tool matches it, and one of them has these arguments."""
    tools = [
        tool for name, tool in app.tools.items() if Policy([Rule(rule.tool, rule.action)]).matching_rules(name, {})
    ]
    if not tools:
        raise ConfigError(
            f"{rule.source} {rule.tool}: no tool matches this name; there are: {', '.join(app.tools) or 'none'}"
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


def make_turn_options(
    agent: AgentDefinition[Any], options: argparse.Namespace, rules: Sequence[Rule], extra: Iterable[Any]
) -> TurnOptions:
    """Merge the options of an agent with those of the command line."""
    model = "" if agent.model is None or isinstance(agent.model, str) else agent.model.name
    spec = agent.options(model, TurnOptions(folder=work_folder()))
    changed: dict[str, Any] = {"rules": (*spec.rules, *rules), "mode": MODES[options.mode]}
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
