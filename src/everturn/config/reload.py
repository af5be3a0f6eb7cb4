"""Configuration reload: replaces agents, limits and rules while a server runs; the rest needs a restart.

A file is read and validated as a whole before any of it applies; an invalid one changes nothing, and is logged. A rule
of `[[permissions]]` that denies applies from the next call on, in running turns too; the prompt, tools and rules of an
agent apply to turns that start later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from everturn.access.context.server_context import ServerContext
from everturn.base_app import BaseApp
from everturn.config.build import ensure_accounts, refresh_agents
from everturn.config.hooks import read_hooks
from everturn.config.layers import SYSTEM_FILE, user_file
from everturn.config.load import LoadedConfig, load_config
from everturn.config.mcp_logins import open_logins
from everturn.config.schedules import apply_schedules
from everturn.config.settings_reload import SIGNAL, StoredSettings
from everturn.errors import ConfigError, StoreUnavailable
from everturn.inbound_hooks.hook import InboundHook
from everturn.running.permissions import Permissions

log = logging.getLogger(__name__)
PAUSE = 1.0  # seconds between two checks
SETTINGS_PAUSE = 5.0  # seconds between two looks at the stored settings; a signal comes before
LIVE = ("agents", "hooks", "limits", "permissions", "prompts", "schedules", "tenants")
"""Tables that are reloaded. A tenant or user that is no longer named stays as it is."""


class ConfigReloader:
    """Detects changes, and applies them."""

    def __init__(
        self,
        loaded: LoadedConfig,
        app: BaseApp,
        context: ServerContext | None,
        model: str,
        named: str | None = None,
        environ: Mapping[str, str] | None = None,
        system: Path = SYSTEM_FILE,
    ) -> None:
        self.loaded, self._app, self._context, self._model = loaded, app, context, model
        self.files = loaded  # without the stored settings
        self.settings: StoredSettings | None = None
        self._lock = asyncio.Lock()
        self._named, self._system = named, system
        self._environ = os.environ if environ is None else environ
        self._seen = self._file_states()
        self._signalled = asyncio.Event()

    @property
    def default_model(self) -> str:
        """The model of agents that name none."""
        return self._model

    async def open_settings(self, key_file: Path | None = None) -> None:
        """Apply what administrators have stored, now and whenever it changes; `key_file` has the key of its secrets."""
        await open_logins(self._app, self.files, self._environ, key_file)
        if not self.files.config.settings.editable:
            self._app.permissions.release()
            return
        settings = StoredSettings(self, self._app, self._environ, key_file)
        await settings.open()
        self.settings = settings
        await self.apply_settings()
        if self._context is not None:
            self._context.settings = settings

    async def apply_settings(self) -> None:
        """Apply the stored settings as they are now. Invalid ones are left out, and logged."""
        if self.settings is None:
            return
        async with self._lock:
            try:
                await self.settings.read()
                new = await self._with_settings(self.files)
                # First, and by themselves: a denial applies whatever is wrong with another setting.
                self._app.permissions.replace(new.rules, self.settings.tenant_rules)
                self._app.permissions.release()
                self.loaded = replace(self.loaded, rules=new.rules)
                self._apply(new)
                self._replace_hooks(read_hooks(self.files.config, self._environ))
            except (ConfigError, StoreUnavailable) as error:
                log.error("the settings were not changed: %s", error)

    async def _with_settings(self, files: LoadedConfig) -> LoadedConfig:
        if self.settings is None:
            return files
        applied = await asyncio.to_thread(self.settings.add_to, files)
        for (kind, name), reason in applied.problems.items():
            if self.settings.problems.get((kind, name)) != reason:
                log.warning("the stored %s %r is not used: %s", kind, name, reason)
        self.settings.problems = applied.problems
        self.settings.install_models(applied)
        self.settings.install_servers(applied)
        self.settings.read_hooks(applied)
        return applied.loaded

    def _replace_hooks(self, hooks: list[InboundHook]) -> None:
        """Make the hooks of the files, and those of the settings, the ones that there are."""
        if self._context is not None:
            stored = self.settings.hooks if self.settings is not None else ()
            self._context.inbound_hooks.replace_all([*hooks, *stored])

    async def watch_settings(self, pause: float = SETTINGS_PAUSE) -> None:
        """Apply changes of other processes: at once when they signal, and otherwise after a pause; until cancelled."""
        if self.settings is None:
            return
        signals = self._app.bus.listen(SIGNAL)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await signals.wait()
                with suppress(StoreUnavailable):
                    if await self.settings.has_changed():
                        await self.apply_settings()
        finally:
            signals.close()

    async def watch(self, pause: float = PAUSE) -> None:
        """Check periodically, and at once on SIGHUP, until cancelled."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, ValueError, RuntimeError, AttributeError):  # not available on every system
            loop.add_signal_handler(signal.SIGHUP, self._signalled.set)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._signalled.wait()
                is_signalled = self._signalled.is_set()
                self._signalled.clear()
                state = await asyncio.to_thread(self._file_states)
                if is_signalled or state != self._seen:
                    self._seen = state
                    await self.reload()
        finally:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(signal.SIGHUP)

    async def reload(self) -> bool:
        """Read everything again, and apply what can change at run time. False: it is invalid, and nothing changed."""
        try:
            new = await asyncio.to_thread(load_config, self._named, self._environ, self._system)
            _check_files(self.files, new)
            old, hooks = self.files, read_hooks(new.config, self._environ)
            async with self._lock:
                self._apply(await self._with_settings(new))
                self.files = new
                self._replace_hooks(hooks)
            if self._context is not None:
                await ensure_accounts(self._context.accounts, new, self._app.clock.now())
                await apply_schedules(self._context.schedules, new.config, old.config)
        except ConfigError as error:
            for line in str(error).splitlines():
                log.error("the configuration was not changed: %s", line)
            return False
        except StoreUnavailable as error:
            log.error(
                "new tenants, users and schedules are not stored yet, because the store does not answer: %s", error
            )
        return True

    def _apply(self, new: LoadedConfig) -> None:
        old = self.loaded
        if (new.tree.values, new.systems, new.prompts) == (old.tree.values, old.systems, old.prompts):
            return
        self._check_models(new)
        Permissions(new.rules)  # before anything changes: it may raise
        agents = self._context.agents if self._context is not None else None
        refresh_agents(agents, new, self._model, self._app, old, self._environ)  # it raises before it changes anything
        self._app.permissions.replace(new.rules)
        if self._context is not None:
            self._context.saved_prompts = new.prompts
        later = [name for name in type(new.config).__struct_fields__ if name not in LIVE and _differ(old, new, name)]
        self.loaded = new
        log.info("the configuration was reloaded; its agents, limits, rules and schedules are in effect")
        if later:
            log.warning("the changes under %s need a restart", ", ".join(f"[{name}]" for name in later))

    def _check_models(self, new: LoadedConfig) -> None:
        """Refuse an agent whose model needs a restart: all its turns would fail."""
        for name, agent in new.config.agents.items():
            for model in filter(None, (agent.model, *agent.models)):
                try:
                    self._app.model_for(model)
                except ConfigError as error:
                    where = new.tree.where(("agents", name, "model"))
                    reason = "a new model needs a restart" if model in new.config.models else error
                    raise ConfigError(f"{where}: agents.{name}: {model}: {reason}") from None

    def _file_states(self) -> tuple[object, ...]:
        """Return the state of the files: it changes when a file is replaced or written."""
        usual = (self._system, user_file(self._environ))
        files = [Path(self._named).expanduser()] if self._named is not None else [path for path in usual if path]
        files += [
            Path(self.loaded.tree.where(("agents", name, "system_file")).source).parent / agent.system_file
            for name, agent in self.loaded.config.agents.items()
            if agent.system_file
        ]
        files += [
            Path(self.loaded.tree.where(("agents", name, "instructions", at)).source).parent / part.file
            for name, agent in self.loaded.config.agents.items()
            for at, part in enumerate(agent.instructions)
            if not isinstance(part, str) and part.file
        ]
        files += [
            Path(self.loaded.tree.where(("prompts", name, "file")).source).parent / prompt.file
            for name, prompt in self.loaded.config.prompts.items()
            if prompt.file
        ]
        return tuple(_file_state(file) for file in files)


def _check_files(old: LoadedConfig, new: LoadedConfig) -> None:
    """Refuse to continue without a file: what it denied would be allowed while it is being moved.

    Raises:
        ConfigError: a file is missing.
    """
    if removed := [file for file in old.files if file not in new.files]:
        raise ConfigError(f"{', '.join(removed)} was removed from the configuration; this needs a restart")


def _differ(old: LoadedConfig, new: LoadedConfig, name: str) -> bool:
    return getattr(old.config, name) != getattr(new.config, name)


def _file_state(file: Path) -> tuple[object, ...]:
    try:
        status = file.stat()
        return (file, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return (file,)
