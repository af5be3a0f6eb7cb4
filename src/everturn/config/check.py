"""Validation of a decoded configuration beyond its types: names, addresses, rules and files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path as File
from typing import Any, Final
from urllib.parse import urlsplit

from everturn.access.context.scope import check_user_id
from everturn.cluster.nats_address import is_encrypted, nats_servers
from everturn.config.audio import check_audio
from everturn.config.decode import ConfigDecoder
from everturn.config.errors import nearest
from everturn.config.hooks import check_hooks
from everturn.config.schedules import check_schedules
from everturn.config.schema import (
    AgentTable,
    ClusterTable,
    Config,
    McpTable,
    ModelTable,
    OidcTable,
    ProgramTable,
    RuleTable,
)
from everturn.config.secrets import LITERAL, REFERENCE, TextWithRefs
from everturn.config.toml_positions import KeyPath
from everturn.config.webhooks import check_webhooks
from everturn.core.canonical_json import replace_surrogates
from everturn.core.rules.policy import Layer, Rule
from everturn.core.rules.urls import is_loopback
from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.saved_prompts import PromptArgument, SavedPrompt, check_prompt
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model as named_model
from everturn.models.vendors import VENDORS
from everturn.permissions.rules_file import DEFAULT_KINDS, read_rule
from everturn.tools.tool_options import TOOL_NAME

MAX_PORT = 65_535
# Where the models of a cloud are is checked later, like keys.
ANY_CLOUD: Final = {
    "AZURE_OPENAI_ENDPOINT": "https://unknown.example",
    "GOOGLE_CLOUD_PROJECT": "unknown",
    "AWS_REGION": "us-east-1",
}
SYSTEM_SIZE = 200_000  # bytes of a prompt
_SECRET_NAME: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|AUTHORIZATION|COOKIE)$", re.IGNORECASE)
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class CheckedConfig:
    """Results of the validation: the rules, the prompts and rules of agents by name, and the saved prompts."""

    def __init__(self) -> None:
        self.rules: tuple[Rule, ...] = ()
        self.systems: dict[str, str] = {}
        self.agent_rules: dict[str, tuple[Rule, ...]] = {}
        self.prompts: tuple[SavedPrompt, ...] = ()


def check_config(config: Config, reader: ConfigDecoder) -> CheckedConfig:
    """Validate everything; problems are added to the decoder."""
    checked = CheckedConfig()
    _check_server(config, reader)
    if config.auth.oidc is not None:
        _check_oidc(config.auth.oidc, config, reader)
    _check_cluster(config, reader)
    _check_models(config, reader)
    check_schedules(config, reader)
    check_hooks(config, reader)
    check_webhooks(config, reader)
    check_audio(config, reader)
    _check_model(config.small_model, config, ("small_model",), reader)
    checked.rules = _rules(config.permissions, "config", ("permissions",), reader)
    for name, agent in config.agents.items():
        path = ("agents", name)
        checked.agent_rules[name] = _rules(agent.permissions, "agent", (*path, "permissions"), reader)
        checked.systems[name] = _instructions(agent, path, reader)
        _check_agents_of(name, config, reader)
        for at, model in (
            ("model", agent.model),
            *((f"models {n}", name_of_model) for n, name_of_model in enumerate(agent.models)),
        ):
            key, _, number = at.partition(" ")
            _check_model(model, config, (*path, key, int(number)) if number else (*path, key), reader)
    checked.prompts = tuple(_saved_prompts(config, reader))
    if config.tools.files and config.tools.virtual_files:
        reader.add_problem(
            ("tools", "virtual_files"), "files and virtual_files have tools of the same names; use one of them"
        )
    for name, program in config.settings.programs.items():
        _check_program(program, ("settings", "programs", name), reader)
    for name, server in config.mcp.items():
        _check_mcp(server, ("mcp", name), reader)
    if config.telemetry.ratio > 1:
        reader.add_problem(("telemetry", "ratio"), "this is a part of all turns: from 0 to 1")
    if not config.telemetry.interval:
        reader.add_problem(("telemetry", "interval"), "this is how many seconds are between two reports: more than 0")
    _check_tenants(config, reader)
    return checked


def _check_tenants(config: Config, reader: ConfigDecoder) -> None:
    for tenant in config.tenants:
        if _TENANT.fullmatch(tenant) is None:
            reader.add_problem(("tenants", tenant), "the name of a tenant has a-z, 0-9, '_' and '-', at most 64")
        for user, row in config.tenants[tenant].users.items():
            try:
                check_user_id(user, "the id of a user")
            except ConfigError as error:
                reader.add_problem(("tenants", tenant, "users", user), str(error))
            if row.role == "operator" and tenant != LOCAL:
                place = ("tenants", tenant, "users", user, "role")
                reader.add_problem(
                    place, f"an operator sees to all tenants, and is in {LOCAL!r}; an owner is the most here"
                )


def _check_cluster(config: Config, reader: ConfigDecoder) -> None:
    cluster = config.cluster
    is_tls = True
    if cluster.nats:
        try:
            is_tls = is_encrypted(nats_servers(REFERENCE.sub("x", cluster.nats.written)))
        except ConfigError as error:
            reader.add_problem(("cluster", "nats"), str(error))
    for key in ("nats_ca", "nats_certificate", "nats_key"):
        if getattr(cluster, key) and not is_tls:
            reader.add_problem(("cluster", key), "this is for TLS, and no server under `nats` is tls://")
    if cluster.nats_key and not cluster.nats_certificate:
        reader.add_problem(("cluster", "nats_key"), "a key needs its certificate: say nats_certificate, too")
    if cluster.identity_key and not cluster.identity_key.startswith("publickeyv1_"):
        reader.add_problem(("cluster", "identity_key"), "the public key of a Restate looks like publickeyv1_…")
    _check_temporal(cluster, reader)


def _check_temporal(cluster: ClusterTable, reader: ConfigDecoder) -> None:
    written = REFERENCE.sub("x", cluster.temporal.written)
    if not written:
        return
    if cluster.restate:
        reader.add_problem(("cluster", "temporal"), "a cluster has one engine: take `restate` or `temporal` away")
    if re.fullmatch(r"((temporal|tls)://)?[^/]+:\d+/?|x", written) is None:
        reader.add_problem(
            ("cluster", "temporal"),
            "this is not an address of Temporal; it looks like temporal://127.0.0.1:7233, or tls://…",
        )
    for key in ("temporal_ca", "temporal_certificate", "temporal_key", "temporal_api_key"):
        if getattr(cluster, key) and written != "x" and not written.startswith("tls://"):
            reader.add_problem(("cluster", key), "this is for TLS, and `temporal` is not tls://")
    if bool(cluster.temporal_key) != bool(cluster.temporal_certificate):
        reader.add_problem(("cluster", "temporal_key"), "a certificate and its key go together: set both, or none")


def _check_server(config: Config, reader: ConfigDecoder) -> None:
    server = config.server
    if server.port > MAX_PORT:
        reader.add_problem(("server", "port"), f"a port is at most {MAX_PORT}; 0 is any that is free")
    if not server.host:
        reader.add_problem(("server", "host"), "this is no address to listen on; 127.0.0.1 is this machine alone")
    if server.public_url and (not _is_web(server.public_url) or urlsplit(server.public_url).path.strip("/")):
        reader.add_problem(
            ("server", "public_url"), "this is no address of a whole site; it looks like https://chat.example.org"
        )
    if not 0 < len(server.title.strip()) <= 60:
        reader.add_problem(("server", "title"), "a title has 1 to 60 characters")
    if server.accent and re.fullmatch("#[0-9a-fA-F]{6}", server.accent) is None:
        reader.add_problem(("server", "accent"), 'this is no colour; it looks like "#0f766e"')
    for at, origin in enumerate(server.origins):
        if not _is_web(origin) or urlsplit(origin).path:
            reader.add_problem(
                ("server", "origins", at), "an origin is a scheme and a host, as https://app.example.org; no *"
            )
    _check_proxies(server.trusted_proxies, reader)
    for at, host in enumerate(server.hosts):
        if not re.fullmatch(r"[A-Za-z0-9.:\[\]-]+", host):
            reader.add_problem(("server", "hosts", at), "a host is a name, as chat.example.org, without scheme or *")
    for name, least in MINIMUMS.items():
        if getattr(server, name) < least:
            reader.add_problem(("server", name), f"this is at least {least}; 0 does not mean that there is no limit")


def _check_proxies(proxies: Sequence[str], reader: ConfigDecoder) -> None:
    for at, proxy in enumerate(proxies):
        try:
            ip_network(proxy)
        except ValueError:
            reader.add_problem(
                ("server", "trusted_proxies", at),
                "this is no address or network; it looks like 10.0.0.5 or 10.0.0.0/24",
            )


MINIMUMS: Final = {
    "headers": 4096,
    "body": 1024,
    "connections": 8,
    "header_time": 1,
    "body_time": 1,
    "idle": 1,
    "keep_alive": 1,
    "login": 60,
}
"""The minimum values with which a server works."""


def _check_oidc(oidc: OidcTable, config: Config, reader: ConfigDecoder) -> None:
    if not oidc.tenant_claim and oidc.tenant != LOCAL and oidc.tenant not in config.tenants:
        known = (LOCAL, *config.tenants)
        reader.add_problem(
            ("auth", "oidc", "tenant"), f"there is no tenant {oidc.tenant!r}; {nearest(oidc.tenant, known)}"
        )
    address = urlsplit(oidc.issuer)
    if address.scheme != "https" and not (address.scheme == "http" and is_loopback(address.hostname or "")):
        reader.add_problem(("auth", "oidc", "issuer"), "an issuer is an address that begins with https://")
    for at, name in enumerate(oidc.algorithms):
        if name.lower() == "none" or name.upper().startswith("HS"):
            reader.add_problem(
                ("auth", "oidc", "algorithms", at), "only algorithms with a public key can be trusted here"
            )
    roles = [(("role",), oidc.role), *((("roles", value), role) for value, role in oidc.roles.items())]
    for place, role in roles:
        if role == "operator":
            reader.add_problem(
                ("auth", "oidc", *place), "a token cannot grant the role operator; the highest role is owner"
            )


def _check_models(config: Config, reader: ConfigDecoder) -> None:
    for name, model in config.models.items():
        path = ("models", name)
        if ":" in name or name in VENDORS:
            reader.add_problem(path, "a name of one's own has no ':' and is not that of a vendor")
        key = model.api_key
        try:  # with any key: whether it is set is checked later
            named_model(
                model.model,
                base_url=model.base_url,
                key="unknown",
                tool_format=model.tool_format,
                environ={**ANY_CLOUD, **os.environ},
            )
        except ConfigError as error:
            at = "base_url" if "base URL" in str(error) else "tool_format" if "tool_format" in str(error) else "model"
            reader.add_problem((*path, at), str(error))
        _check_places(model, config, path, reader)
        for at, other in enumerate(model.fallback):
            _check_model(other, config, (*path, "fallback", at), reader)
        vendor = VENDORS.get(model.model.partition(":")[0])
        if key and vendor is not None and not model.base_url and not vendor.key:
            reader.add_problem((*path, "api_key"), f"{vendor.vendor} takes no key; or is a base_url missing?")


def _check_places(model: ModelTable, config: Config, path: KeyPath, reader: ConfigDecoder) -> None:
    """Check the deployments of a model, and the names of rate limits."""
    limits = [((*path, "rate_limit"), model.rate_limit)]
    for at, place in enumerate(model.deployments):
        where = (*path, "deployments", at)
        limits.append(((*where, "rate_limit"), place.rate_limit))
        url = place.base_url or ("" if place.model else model.base_url)
        try:
            named_model(place.model or model.model, base_url=url, key="unknown", environ={**ANY_CLOUD, **os.environ})
        except ConfigError as error:
            reader.add_problem((*where, "base_url" if "base URL" in str(error) else "model"), str(error))
    for where, name in limits:
        if name and name not in config.rate_limits:
            known = config.rate_limits
            reader.add_problem(where, f"there is no rate limit {name!r} under [rate_limits]; {nearest(name, known)}")


def _check_model(name: str, config: Config, path: KeyPath, reader: ConfigDecoder) -> None:
    """Check the name of a model: one under [models], or a vendor's."""
    if not name or name in config.models or name == OFFLINE:
        return
    if ":" not in name:
        reader.add_problem(path, f"there is no model {name!r} under [models]; {nearest(name, config.models)}")
        return
    try:
        named_model(name, key="unknown")
    except ConfigError as error:
        reader.add_problem(path, str(error))


def _rules(rows: tuple[RuleTable, ...], layer: Layer, path: KeyPath, reader: ConfigDecoder) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for at, row in enumerate(rows):
        where = reader.where((*path, at))
        try:
            table = {"tool": row.tool, "action": row.action, "match": row.match}
            rules.append(read_rule(table, layer, f"{where.source}:{where.line}", DEFAULT_KINDS))
        except ConfigError as error:
            key = "match" if str(error).startswith(("the pattern", "`match`")) else "tool"
            reader.add_problem((*path, at, key), str(error))
    return tuple(rules)


def _check_agents_of(name: str, config: Config, reader: ConfigDecoder) -> None:
    """Check the name of an agent, and the agents that it calls or hands over to."""
    agent, path = config.agents[name], ("agents", name)
    if TOOL_NAME.fullmatch(name) is None:
        reader.add_problem(path, "the name of an agent has letters, digits, '_' and '-', at most 64")
    for key, others in (("subagents", agent.subagents), ("handoffs", agent.handoffs)):
        for at, other in enumerate(others):
            if other not in config.agents:
                reader.add_problem((*path, key, at), f"there is no agent {other!r}; {nearest(other, config.agents)}")
            elif other == name:
                reader.add_problem((*path, key, at), "this is the agent itself; name another one")
    if chain := _find_cycle(name, config.agents, ()):
        text = f"{' > '.join(chain)}: an agent cannot be below itself; `handoffs` can go both ways"
        reader.add_problem((*path, "subagents"), text)


def _find_cycle(name: str, agents: Mapping[str, AgentTable], above: tuple[str, ...]) -> tuple[str, ...]:
    """Return a chain of sub-agents that begins and ends with the first of them; () if there is none."""
    chain = (*above, name)
    if name in above:
        return chain if name == chain[0] and len(chain) > 2 else ()
    cycles = (_find_cycle(other, agents, chain) for other in agents[name].subagents if other in agents)
    return next(filter(None, cycles), ())


def _instructions(agent: AgentTable, path: KeyPath, reader: ConfigDecoder) -> str:
    """Return the texts among the instructions of an agent, with those that are in files."""
    keys = [key for key in ("instructions", "system", "system_file") if getattr(agent, key)]
    if len(keys) > 1:
        reader.add_problem((*path, keys[-1]), f"there is a `{keys[0]}`, too; use one of them")
        return ""
    if agent.system_file:
        return _read_prompt(agent.system_file, (*path, "system_file"), reader)
    if agent.system or isinstance(agent.instructions, str):
        return agent.system or str(agent.instructions)
    texts: list[str] = []
    for at, part in enumerate(agent.instructions):
        place = (*path, "instructions", at)
        if isinstance(part, str):
            texts.append(part)
        elif bool(part.file) == bool(part.function) or (part.each_step and not part.function):
            text = 'a part is a text, { file = "…" }, or { function = "module:name", each_step = false }'
            reader.add_problem(place, text)
        elif part.file:
            texts.append(_read_prompt(part.file, place, reader))
    return "\n\n".join(filter(None, texts))


def _read_prompt(name: str, at: KeyPath, reader: ConfigDecoder) -> str:
    """Read a prompt. Its file must be inside the folder of the file that names it, symlinks resolved."""
    where = reader.where(at)
    if not where.line:
        reader.add_problem(at, "a file is named beside a file; in the environment say `instructions`")
        return ""
    folder = File(where.source).resolve().parent
    try:
        file = (folder / name).resolve()
        if os.path.isabs(name) or not file.is_relative_to(folder):
            reader.add_problem(at, "a prompt is read beneath the folder of this file, and nowhere else")
            return ""
        with file.open("rb") as opened:
            data = opened.read(SYSTEM_SIZE + 1)
        if len(data) > SYSTEM_SIZE:
            reader.add_problem(at, f"this file is too large for a prompt: there may be {SYSTEM_SIZE} bytes")
        return replace_surrogates(data.decode())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a text in UTF-8"
        reader.add_problem(at, f"this file cannot be read: {why}")
        return ""


def _saved_prompts(config: Config, reader: ConfigDecoder) -> Iterator[SavedPrompt]:
    """Return the saved prompts, with the texts that are in files."""
    for name, table in config.prompts.items():
        path = ("prompts", name)
        if bool(table.text) == bool(table.file):
            reader.add_problem(path, 'a prompt has either `text = "…"` or `file = "review.md"`')
            continue
        text = table.text or _read_prompt(table.file, (*path, "file"), reader)
        arguments = tuple(
            PromptArgument(argument, about.description, about.default) for argument, about in table.arguments.items()
        )
        try:
            yield check_prompt(SavedPrompt(name, text, table.description, arguments))
        except ConfigError as error:
            reader.add_problem(path, str(error))


def _check_program(program: ProgramTable, path: KeyPath, reader: ConfigDecoder) -> None:
    """Check that a file names what is started, and that an administrator chooses no variable that changes what runs."""
    for key in program.__struct_fields__:
        if reader.has((*path, key)) and not reader.where((*path, key)).line:
            reader.add_problem((*path, key), "what is started is named in a file, and not in the environment")
    for key, value in program.env.items():
        if _SECRET_NAME.search(key) and value:
            reader.add_problem(
                (*path, "env", key), "a secret is one of `variables`, to which an administrator gives it"
            )
    for at, name in enumerate(program.variables):
        if _VARIABLE.fullmatch(name) is None or name in _LOADER_VARIABLES or name.startswith(("LD_", "DYLD_")):
            reader.add_problem(
                (*path, "variables", at), "this is no variable, or one with which other code runs in the program"
            )


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOADER_VARIABLES: Final = frozenset(
    "PATH HOME SHELL IFS ENV BASH_ENV PYTHONPATH PYTHONHOME PYTHONSTARTUP NODE_OPTIONS NODE_PATH RUBYOPT RUBYLIB "
    "PERL5LIB PERL5OPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS GIT_SSH_COMMAND UV_INDEX_URL PIP_INDEX_URL".split()
)


def _check_mcp(server: McpTable, path: KeyPath, reader: ConfigDecoder) -> None:
    """Check that secrets are references; `mcp.config` validates the rest when it creates the servers."""
    secrets: list[tuple[str, str, Any]] = [("env", key, value) for key, value in server.env.items()]
    secrets += [("headers", key, value) for key, value in server.headers.items()]
    for table, key, value in secrets:
        if _SECRET_NAME.search(key) and value and "${" not in str(value):
            reader.add_problem((*path, table, key), LITERAL)
    for key in server.__struct_fields__:
        if reader.has((*path, key)) and not reader.where((*path, key)).line:
            reader.add_problem(
                (*path, key), "what is started or talked to is named in a file, and not in the environment"
            )
    if bool(server.command) == bool(server.url) and not server.disabled:
        reader.add_problem(path, "a server has either a command (a program to start) or a url, and not both")


def _is_web(text: str) -> bool:
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname) and not address.username
    except ValueError:
        return False


def unresolved_references(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Return the references that cannot be resolved here, each with its key: a start would fail."""
    problems: list[str] = []
    values: list[tuple[str, TextWithRefs]] = [
        (f"models.{name}.api_key", model.api_key) for name, model in config.models.items()
    ]
    for name, audio in (("transcription", config.audio.transcription), ("speech", config.audio.speech)):
        if audio is not None:
            values.append((f"audio.{name}.api_key", audio.api_key))
    values += [("store.url", config.store.url), ("telemetry.otlp", config.telemetry.otlp)]
    values += [
        (f"cluster.{key}", getattr(config.cluster, key)) for key in ("database", "restate", "admin", "temporal", "nats")
    ]
    values.append(("router.routes", config.router.routes))
    values += [(f"cells.{name}.database", cell.database) for name, cell in config.cells.items()]
    values.append(("cluster.temporal_api_key", config.cluster.temporal_api_key))
    values += [(f"telemetry.headers.{key}", value) for key, value in config.telemetry.headers.items()]
    if config.auth.oidc is not None:
        values.append(("auth.oidc.client_secret", config.auth.oidc.client_secret))
    values += [(f"auth.signing_keys[{n}]", key) for n, key in enumerate(config.auth.signing_keys)]
    encryption = config.store.encryption
    values.append(("store.encryption.keyring", encryption.keyring))
    values += [(f"store.encryption.master_keys[{n}]", key) for n, key in enumerate(encryption.master_keys)]
    for key, text in values:
        problems += [f"{key}: {reference} is not set" for reference in text.missing(environ)]
    return problems
