"""In-memory `SettingStore`: the reference implementation. No method awaits anything, so each is one transaction."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.tenants.settings import INSTALLATION, Setting, SettingKind


class DictSettings:
    """The settings of one process; they end with it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], list[Setting]] = {}

    async def revision(self) -> int:
        """Return the number of versions."""
        return sum(map(len, self._rows.values()))

    async def current(self, scope: str = INSTALLATION) -> list[Setting]:
        """Return the newest versions, the oldest setting first."""
        found = [rows for (of, _, _), rows in self._rows.items() if of == scope and not rows[-1].is_deleted]
        return [rows[-1] for rows in sorted(found, key=lambda rows: (rows[0].at, rows[0].kind, rows[0].name))]

    async def of_tenants(self, kind: SettingKind) -> list[Setting]:
        """Return the newest versions of the settings of tenants, by tenant."""
        found = [rows[-1] for (of, of_kind, _), rows in self._rows.items() if of != INSTALLATION and of_kind == kind]
        return sorted((row for row in found if not row.is_deleted), key=lambda row: (row.scope, row.name))

    async def versions(self, kind: SettingKind, name: str, scope: str = INSTALLATION) -> list[Setting]:
        """Return all versions, newest first."""
        return self._rows.get((scope, kind, name), [])[::-1]

    async def add(self, setting: Setting) -> bool:
        """Add the next version."""
        rows = self._rows.setdefault((setting.scope, setting.kind, setting.name), [])
        if setting.version != len(rows) + 1:
            return False
        rows[:] = [*(replace(row, secret=b"") for row in rows), setting]
        return True
