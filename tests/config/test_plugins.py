"""`plugins` in everturn.toml: which objects they become, where they reach, and what is said when one cannot be had."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cli_run import run

from everturn import Chat
from everturn.app import App
from everturn.config.build import CommandLineOverrides, app_factory, open_server
from everturn.config.load import LoadedConfig, load_config
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore

NOWHERE = Path("/nonexistent/everturn.toml")
AUDIT = """
import os
from everturn.plugins import Plugin

class Audit(Plugin):
    def __init__(self, name="audit", path="", level=1):
        self.kept, self.path, self.level = [], path, level

    def on_turn_start(self, ctx):
        self.kept.append(ctx.turn)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                print(ctx.turn, file=file)

class Needs:
    def __init__(self, path):
        self.path = path

    def on_turn_end(self, ctx): ...

class Misspelt:
    def on_turn_strat(self, ctx): ...

class Broken:
    def __init__(self):
        raise ValueError("no disk")

    def on_turn_end(self, ctx): ...

class Second(Audit):
    pass

ready = Audit()
nothing = 3

def made(level):
    return Second(level=level)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "audit.py").write_text(AUDIT, encoding="utf-8")
    return tmp_path


def read(folder: Path, text: str, **environ: str) -> LoadedConfig:
    file = folder / "everturn.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(str(file), environ, NOWHERE)


def make(loaded: LoadedConfig, **environ: str) -> App:
    return app_factory(loaded, "offline:demo", environ)(store=MemoryStore())


def plugins_of(app: App) -> list[Any]:
    return [plugin for plugin in app.hooks.plugins.values() if hasattr(plugin, "kept")]


def test_classes_objects_and_functions_become_plugins_in_their_order(folder: Path) -> None:
    text = """plugins = ["audit.py:ready", { plugin = "audit.py:made", options = { level = 3 } }]"""
    first, second = plugins_of(make(read(folder, text)))
    assert (type(first).__name__, type(second).__name__) == ("Audit", "Second")
    assert second.level == 3
    [own], [other] = (plugins_of(make(read(folder, 'plugins = ["audit.py:Audit"]'))) for _ in range(2))
    assert own is not other


def test_a_module_is_found_where_python_finds_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "audit_of_a_package.py").write_text(AUDIT, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    loaded = read(folder, 'plugins = ["audit_of_a_package:Audit"]')
    try:
        [plugin] = plugins_of(make(loaded))
        assert type(plugin).__module__ == "audit_of_a_package"
    finally:
        sys.modules.pop("audit_of_a_package", None)


def test_a_secret_in_the_options_stands_by_reference(folder: Path) -> None:
    loaded = read(folder, """plugins = [{ plugin = "audit.py:Audit", options = { path = "${env:AUDIT_PATH}" } }]""")
    [plugin] = plugins_of(make(loaded, AUDIT_PATH="/dev/null"))
    assert plugin.path == "/dev/null"
    assert "/dev/null" not in repr(loaded)
    with pytest.raises(ConfigError, match=r"everturn\.toml:1:\d+: plugins\[0\]: .*AUDIT_PATH is not set"):
        make(loaded)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('"gone.py:Audit"', r"there is no file .*gone\.py"),
        ('"no_such_module_x:Audit"', "there is no module no_such_module_x$"),
        ('"audit:Audit"', r"no module audit; for the file audit\.py beside the configuration, write 'audit\.py'"),
        ('"audit.py"', r"name the plugin after a colon, as 'mypackage\.audit:Audit'; .*there are: Audit, Needs"),
        ('"audit.py:Audti"', "audit.py has no 'Audti'; did you mean 'Audit'"),
        ('"audit.py:Needs"', r"Needs cannot be created: .*'path'; write \{ plugin = 'audit.py:Needs', options = "),
        ('"audit.py:Broken"', "Broken cannot be created: ValueError: no disk"),
        ('"audit.py:Misspelt"', "there is no hook 'on_turn_strat'"),
        ('"audit.py:nothing"', "has none of the hooks"),
        ('{ plugin = "audit.py:ready", options = { level = 2 } }', "ready is an object and takes no options; .* Audit"),
        ('{ plugin = "audit.py:Audit", options = { lvl = 2 } }', "Audit cannot be created: .*'lvl'"),
    ],
)
def test_what_cannot_be_had_is_reported_with_its_line_and_a_way_out(folder: Path, entry: str, problem: str) -> None:
    loaded = read(folder, f'plugins = [\n  "audit.py:ready",\n  {entry},\n]')
    with pytest.raises(ConfigError, match=rf"everturn\.toml:3:3: plugins\[1\]: .*{problem}"):
        make(loaded)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("plugins = [3]", r"everturn\.toml:1:12: plugins\[0\]: .* is wanted here"),
        ("plugins = 'audit.py:Audit'", r"everturn\.toml:1:1: plugins: a list is wanted here"),
        ("plugins = [{ options = {} }]", r"plugins\[0\]: it needs 'plugin'"),
        ("plugins = [{ plugin = 'a:B', option = {} }]", r"\[plugins\[0\]\] has no 'option'; did you mean 'options'"),
    ],
)
def test_what_is_no_list_of_plugins_is_refused_when_the_file_is_read(folder: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(folder, text)


async def test_they_reach_servers_and_runs(folder: Path) -> None:  # a worker's App is made as `make` does
    turns_file = folder / "turns.txt"
    options = f"options = {{ path = {json.dumps(str(turns_file))} }}"
    text = f'plugins = [{{ plugin = "audit.py:Audit", {options} }}]\n[store]\nurl = "everturn.db"'
    loaded = read(folder, text)
    async with open_server(loaded, CommandLineOverrides(model="offline:demo"), {}) as context:
        await (await Chat("offline:demo", app=context.app).send("hello"))
    assert len(turns_file.read_text(encoding="utf-8").split()) == 1
    done = await run(folder, "hello", "--model", "offline:demo", "--config", str(folder / "everturn.toml"))
    assert done.code == 0, done.err
    assert len(turns_file.read_text(encoding="utf-8").split()) == 2
