"""A configuration that changes while a server runs: agents, limits and rules are replaced, the rest waits for a restart.

A file is read and checked whole before anything of it holds; what makes no sense changes nothing, and is logged. A rule
of `[[permissions]]` that denies holds from the next call on, in turns that run too; the prompt, tools and rules of an
agent hold for turns that begin later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from everturn.access.access import House
from everturn.config.building import ensure, refresh
from everturn.config.layers import SYSTEM_FILE, user_file
from everturn.config.loading import Loaded, load
from everturn.errors import ConfigError, StoreUnavailable
from everturn.turn.permit import Permits
from everturn.wiring import Runtime

log = logging.getLogger(__name__)
PAUSE = 1.0  # seconds between two looks
LIVE = ("agents", "limits", "permissions", "tenants")
"""Tables that are read anew. A tenant or user that is no longer named stays as it is."""


class Reloading:
    """Looks for changes, and lets them hold."""

    def __init__(
        self,
        loaded: Loaded,
        runtime: Runtime,
        house: House | None,
        model: str,
        named: str | None = None,
        environ: Mapping[str, str] | None = None,
        system: Path = SYSTEM_FILE,
    ) -> None:
        self.loaded, self._runtime, self._house, self._model = loaded, runtime, house, model
        self._named, self._system = named, system
        self._environ = os.environ if environ is None else environ
        self._seen = self._look()
        self._told = asyncio.Event()

    async def watch(self, pause: float = PAUSE) -> None:
        """Look again and again, and at once on SIGHUP, until cancelled."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, ValueError, RuntimeError, AttributeError):  # not every system has it
            loop.add_signal_handler(signal.SIGHUP, self._told.set)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._told.wait()
                is_told = self._told.is_set()
                self._told.clear()
                seen = await asyncio.to_thread(self._look)
                if is_told or seen != self._seen:
                    self._seen = seen
                    await self.reload()
        finally:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(signal.SIGHUP)

    async def reload(self) -> bool:
        """Read everything anew, and let what may change at run time hold. False: it makes no sense, and nothing does."""
        try:
            new = await asyncio.to_thread(load, self._named, self._environ, self._system)
            _check_files(self.loaded, new)
            self._apply(new)
            if self._house is not None:
                await ensure(self._house.accounts, new, self._runtime.clock.now())
        except ConfigError as error:
            for line in str(error).splitlines():
                log.error("the configuration is left as it was: %s", line)
            return False
        except StoreUnavailable as error:
            log.error("new tenants and users are not there yet, for the store does not answer: %s", error)
        return True

    def _apply(self, new: Loaded) -> None:
        old = self.loaded
        if (new.tree.values, new.systems) == (old.tree.values, old.systems):
            return
        self._check_models(new)
        Permits(new.rules)  # before anything is changed: it may refuse
        if self._house is not None:
            refresh(self._house.agents, new, self._model, self._runtime)  # it refuses before it changes anything
        self._runtime.permits.replace(new.rules)
        later = [name for name in type(new.config).__struct_fields__ if name not in LIVE and _differ(old, new, name)]
        self.loaded = new
        log.info("the configuration was read anew; agents, limits and rules hold from now on")
        if later:
            log.warning("what has changed under %s needs a restart", ", ".join(f"[{name}]" for name in later))

    def _check_models(self, new: Loaded) -> None:
        """Refuse an agent whose model is not there before a restart: every turn of it would fail."""
        for name, agent in new.config.agents.items():
            for model in filter(None, (agent.model, *agent.models)):
                try:
                    self._runtime.model_for(model)
                except ConfigError as error:
                    where = new.tree.where(("agents", name, "model"))
                    why = "a new model needs a restart" if model in new.config.models else error
                    raise ConfigError(f"{where}: agents.{name}: {model}: {why}") from None

    def _look(self) -> tuple[object, ...]:
        """What is there now, by signs that change with it: a rename over a file, or a write into it."""
        usual = (self._system, user_file(self._environ))
        files = [Path(self._named).expanduser()] if self._named is not None else [one for one in usual if one]
        files += [
            Path(self.loaded.tree.where(("agents", name, "system_file")).source).parent / agent.system_file
            for name, agent in self.loaded.config.agents.items()
            if agent.system_file
        ]
        return tuple(_signs(file) for file in files)


def _check_files(old: Loaded, new: Loaded) -> None:
    """Refuse to go on without a file: what it denied would be allowed while somebody is moving it.

    Raises:
        ConfigError: one is gone.
    """
    if gone := [file for file in old.files if file not in new.files]:
        raise ConfigError(f"{', '.join(gone)} was there, and is gone; to do without it, start again")


def _differ(old: Loaded, new: Loaded, name: str) -> bool:
    return getattr(old.config, name) != getattr(new.config, name)


def _signs(file: Path) -> tuple[object, ...]:
    try:
        found = file.stat()
        return (file, found.st_mtime_ns, found.st_size, found.st_ino)
    except OSError:
        return (file,)
