"""Settings backend port: what the access layer needs of the configuration to change settings at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from everturn.core.rules.policy import Rule
from everturn.core.tenants.settings import Setting, SettingKind

if TYPE_CHECKING:
    from everturn.mcp.servers import McpServers


class FixedSetting(Struct, frozen=True):
    """What a file or the environment defines, and so cannot be changed here."""

    kind: SettingKind
    name: str
    value: str = ""
    where: str = ""


class KeyTest(Struct, frozen=True):
    """What a vendor said to a key: its models, or what went wrong."""

    models: tuple[str, ...] = ()
    problem: str = ""
    is_refused: bool = False


class SettingsBackend(Protocol):
    """Checks, encrypts and applies settings; the configuration of a server implements it."""

    secret_problem: str  # why no secret can be stored; "": it can
    problems: Mapping[tuple[str, str], str]  # kind and name of settings that are not in use, and why
    tenant_problems: Mapping[str, str]  # tenants whose rules are not in use, and why

    @property
    def is_editable(self) -> bool:
        """Whether settings may be changed here."""
        ...

    def fixed(self) -> list[FixedSetting]:
        """What files and the environment define."""
        ...

    def fixed_rules(self) -> Sequence[Rule]:
        """The permission rules that files define."""
        ...

    def vendors(self) -> list[str]:
        """The vendors whose keys can be stored."""
        ...

    def programs(self) -> Mapping[str, Sequence[str]]:
        """The programs that can be started as MCP servers, each with the variables that it takes."""
        ...

    @property
    def servers(self) -> McpServers | None:
        """The MCP servers of administrators; None: MCP is not installed."""
        ...

    def seal(self, setting: Setting, secret: str) -> Setting:
        """A setting with its secret encrypted.

        Raises:
            ConfigError: there is no key to encrypt it with.
        """
        ...

    async def check(self, rows: Sequence[Setting]) -> None:
        """Check what would apply with these settings.

        Raises:
            ConfigError: one of them is invalid.
        """
        ...

    async def changed(self) -> None:
        """Apply a change that was stored, here and in the other processes."""
        ...

    async def test_key(self, setting: Setting) -> KeyTest:
        """Ask a vendor for its models with the stored key."""
        ...
