"""Stored settings as a layer of the configuration: beneath the files, which win.

A model or an agent of a file is fixed: a stored one of the same name is left out. Stored rules are added to those of the
files, and revoke none of their denials. Each stored setting has a type of its own (core/tenants/settings.py), which names no
module, no file and no variable; a secret gets into a table by reference, to a variable that exists in
`StoredEnvironment` alone and in no process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from everturn.config.agents import ASSISTANT
from everturn.config.check import check_config
from everturn.config.decode import ConfigDecoder
from everturn.config.errors import ConfigProblems, SourcePosition
from everturn.config.hooks import stored_hook
from everturn.config.layers import ConfigLayer, merge
from everturn.config.load import LoadedConfig
from everturn.config.schema import Config
from everturn.config.secret_box import SecretBox
from everturn.config.stored_mcp import how_to_allow, stored_server
from everturn.core.rules.policy import Rule
from everturn.core.tenants.settings import AgentSettings, HookSettings, McpSettings, ModelSettings, Setting, decode_body
from everturn.egress.client import EgressClient
from everturn.errors import AddressRefused, ConfigError
from everturn.models.offline import OFFLINE
from everturn.models.vendors import VENDORS
from everturn.permissions.stored_rules import TENANT_SOURCE, read_stored_rules, rule_for_unreadable

SOURCE: Final = "settings"
"""The position of what is stored, in texts about the configuration."""

Place = tuple[str, str]
"""Kind and name of a setting."""


class StoredEnvironment(Mapping[str, str]):
    """The environment of the process, and beneath it the keys of the settings. No other process inherits them."""

    def __init__(self, environ: Mapping[str, str], keys: Mapping[str, str]) -> None:
        self._environ, self._keys = environ, keys

    def __getitem__(self, name: str) -> str:
        """A variable of the process; where it has none, a stored key."""
        return self._environ.get(name, "") or self._keys.get(name, "") or self._environ[name]

    def __iter__(self) -> Iterator[str]:
        """All names."""
        return iter({**self._environ, **self._keys})

    def __len__(self) -> int:
        """The number of names."""
        return len({**self._environ, **self._keys})


class AppliedSettings(Struct, frozen=True):
    """A configuration with settings: the whole, the settings that are not in use and why, and the secrets by variable."""

    loaded: LoadedConfig
    rows: tuple[Setting, ...] = ()
    problems: Mapping[Place, str] = {}
    keys: Mapping[str, str] = {}


def add_settings(
    loaded: LoadedConfig, rows: Sequence[Setting], box: SecretBox | None, default_model: str = ""
) -> AppliedSettings:
    """Return a configuration with the settings that are valid; one that is not is left out, and the reason is told.

    `default_model` is that of agents that name none.
    Rules that cannot be read are replaced by one that asks about every call: one of them may have denied it.
    """
    keys, problems = open_secrets(rows, box)
    usable = [row for row in rows if (row.kind, row.name) not in problems and not is_fixed(loaded, row)]
    try:
        return AppliedSettings(merge_settings(loaded, usable, default_model), tuple(usable), problems, keys)
    except ConfigError:
        pass
    order = {"key": 0, "rules": 1, "model": 2, "agent": 3, "mcp": 4, "hook": 5}
    valid: list[Setting] = []
    for row in sorted(usable, key=lambda row: order[row.kind]):
        try:
            merge_settings(loaded, [*valid, row], default_model)
            valid.append(row)
        except ConfigError as error:
            problems[row.kind, row.name] = str(error)
    merged = merge_settings(loaded, valid, default_model)
    if any(kind == "rules" for kind, _ in problems):
        merged = msgspec.structs.replace(merged, rules=(*merged.rules, rule_for_unreadable()))
    return AppliedSettings(merged, tuple(valid), problems, keys)


def rules_of_tenants(rows: Sequence[Setting]) -> tuple[dict[str, list[Rule]], dict[str, str]]:
    """Return the rules of each tenant that has some, and why those that cannot be read are not in use.

    As for the installation, one that asks about every call of the tenant takes the place of rules that cannot be read.
    """
    rules, problems = dict[str, list[Rule]](), dict[str, str]()
    for row in rows:
        try:
            found = read_stored_rules(decode_body(row), TENANT_SOURCE)
        except ConfigError as error:
            found = [rule_for_unreadable(TENANT_SOURCE)]
            problems[row.scope] = str(error)
        rules.setdefault(row.scope, []).extend(found)
    return rules, problems


def is_fixed(loaded: LoadedConfig, row: Setting) -> bool:
    """Return whether a file has something of this name, which wins."""
    config = loaded.config
    tables = {"model": config.models, "agent": config.agents, "mcp": config.mcp, "hook": config.hooks}
    return row.name in tables.get(row.kind, ())


def known_agents(loaded: LoadedConfig, rows: Sequence[Setting]) -> set[str]:
    """Return the names of the agents of the files and of settings; without any, that of the plain assistant."""
    return {*loaded.config.agents, *(row.name for row in rows if row.kind == "agent")} or {ASSISTANT}


def open_secrets(rows: Sequence[Setting], box: SecretBox | None) -> tuple[dict[str, str], dict[Place, str]]:
    """Return the secrets by variable, and why some cannot be had."""
    keys: dict[str, str] = {}
    problems: dict[Place, str] = {}
    for row in rows:
        if not row.secret:
            continue
        try:
            if box is None:
                raise ConfigError("its secret cannot be decrypted: the key is missing")
            keys[key_variable(row)] = box.open(row)
        except ConfigError as error:
            problems[row.kind, row.name] = str(error)
    return keys, problems


def key_variable(row: Setting) -> str:
    """Return the variable in which a model finds the secret of a setting: a vendor's, or one of its own."""
    if row.kind == "key":
        return VENDORS[row.name].key if row.name in VENDORS else ""
    return f"EVERTURN_SETTING_{row.kind.upper()}_{row.name.encode().hex().upper()}"


def merge_settings(loaded: LoadedConfig, rows: Sequence[Setting], default_model: str = "") -> LoadedConfig:
    """Return the configuration of the files with settings.

    Raises:
        ConfigError: a setting is invalid; the message has a line for each problem.
    """
    for row in rows:
        if row.kind == "mcp":
            body: McpSettings = decode_body(row)
            stored_server(loaded.config, row, body, dict.fromkeys(body.values, ""))
        elif row.kind == "hook":
            hook: HookSettings = decode_body(row)
            stored_hook(row, hook, "", known_agents(loaded, rows))
    tree, rules = _tree(loaded, rows, default_model), _rules(rows)
    if not tree:
        return msgspec.structs.replace(loaded, rules=(*loaded.rules, *rules)) if rules else loaded
    places = {path: SourcePosition(SOURCE) for path in _paths(tree, ())}
    whole = merge([ConfigLayer(loaded.tree.values, loaded.tree.places), ConfigLayer(tree, places)])
    whole = msgspec.structs.replace(whole, files=loaded.tree.files, texts=loaded.tree.texts)
    reader = ConfigDecoder(whole.where, lambda path: path in whole.places)
    config = reader.struct(Config, whole.values)
    if config is None:
        raise ConfigProblems(reader.problems)
    checked = check_config(config, reader)
    if reader.problems:
        raise ConfigProblems(reader.problems)
    return LoadedConfig(config, whole, (*checked.rules, *rules), checked.systems, checked.agent_rules, checked.prompts)


def _rules(rows: Sequence[Setting]) -> list[Rule]:
    return [rule for row in rows if row.kind == "rules" for rule in read_stored_rules(decode_body(row))]


def _tree(loaded: LoadedConfig, rows: Sequence[Setting], default_model: str) -> dict[str, Any]:
    bodies = [(row, decode_body(row)) for row in rows if row.kind != "key"]
    models = {row.name: _model(row, body, loaded) for row, body in bodies if isinstance(body, ModelSettings)}
    offered = [row.name for row, body in bodies if isinstance(body, ModelSettings) and body.offered]
    agents = {row.name: _agent(body, offered) for row, body in bodies if isinstance(body, AgentSettings)}
    if (agents or offered) and not loaded.config.agents and ASSISTANT not in agents:
        # Without an agent in a file there is an assistant, and conversations with it must go on.
        assistant: dict[str, Any] = {"description": "General assistant.", "models": offered}
        if offered and default_model == OFFLINE:  # the demo answers only until there is a model
            assistant["model"] = offered[0]
        agents = {ASSISTANT: assistant, **agents}
    tree: dict[str, Any] = {"models": models, "agents": agents}
    return {name: table for name, table in tree.items() if table}


def _model(row: Setting, body: ModelSettings, loaded: LoadedConfig) -> dict[str, Any]:
    table: dict[str, Any] = {"model": body.model}
    if body.base_url:
        try:
            EgressClient((), loaded.config.settings.allow).check(body.base_url)
        except AddressRefused as error:
            raise ConfigError(f"settings: models.{row.name}.base_url: {error}; {how_to_allow(body.base_url)}") from None
        table["base_url"] = body.base_url
    if body.window is not None:
        table["window"] = body.window
    if body.tool_format:
        table["tool_format"] = body.tool_format
    if row.secret:
        table["api_key"] = f"${{env:{key_variable(row)}}}"
    return table


def _agent(body: AgentSettings, offered: Sequence[str]) -> dict[str, Any]:
    table: dict[str, Any] = msgspec.to_builtins(body)
    if not body.models and offered:
        table["models"] = [name for name in offered if name != body.model]
    return table


def _paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _paths(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(cast("list[Any]", value)):
            yield from _paths(item, (*path, at))
