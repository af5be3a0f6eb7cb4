"""Stored MCP servers: makes a `ServerSpec` of a setting.

A setting has an address, which is under the egress policy, or the name of a program that `[settings.programs]` offers.
No setting has a command: whoever may write one runs any program on the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from everturn.config.errors import nearest
from everturn.config.schema import Config
from everturn.core.tenants.settings import McpSettings, Setting
from everturn.egress.client import EgressClient
from everturn.errors import AddressRefused, ConfigError

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec


def how_to_allow(url: str) -> str:
    """What to write for an address that is not public, or has no https."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except (ValueError, KeyError):
        return "write a URL such as https://example.com"
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f'to allow it, write allow = ["{host}:{port}"] under [settings] in everturn.toml'


def stored_server(config: Config, row: Setting, body: McpSettings, values: Mapping[str, str]) -> ServerSpec:
    """Return the server of a setting. `values` are those of its headers or variables.

    Raises:
        ConfigError: it is invalid, or the file does not offer its program any more.
    """
    from everturn.mcp.config import ServerSpec

    if bool(body.url) == bool(body.program):
        raise ConfigError(f"settings: mcp.{row.name}: a server has either a url or one of the offered programs")
    if body.url:
        try:
            EgressClient((), config.settings.allow).check(body.url)
        except AddressRefused as error:
            raise ConfigError(f"settings: mcp.{row.name}.url: {error}; {how_to_allow(body.url)}") from None
        return ServerSpec(
            row.name,
            url=body.url,
            headers=dict(values),
            auth=body.auth,
            login=(body.login or "user") if body.auth == "oauth" else "",
            allow=tuple(config.settings.allow),
        )
    program = config.settings.programs.get(body.program)
    if program is None:
        hint = nearest(body.program, tuple(config.settings.programs))
        raise ConfigError(
            f"settings: mcp.{row.name}: [settings.programs] of the file offers no program {body.program!r}; {hint}"
        )
    if unknown := [name for name in body.values if name not in program.variables]:
        raise ConfigError(
            f"settings: mcp.{row.name}: {body.program} takes no variable {unknown[0]!r} from the page; "
            f"there are: {', '.join(program.variables) or 'none'}"
        )
    return ServerSpec(
        row.name,
        program.command,
        program.args,
        {**program.env, **values},
        program.cwd,
        auth=body.auth,
    )
