"""`everturn config path|edit|set`: finds the user's configuration file, opens it in an editor, or sets one value in it."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from everturn.cli.config_options import config_file
from everturn.config.layers import user_file
from everturn.config.load import load_config
from everturn.config.toml_edit import set_value
from everturn.errors import ConfigError
from everturn.mcp.private_file import lock_file, write_private
from everturn.terminal.text.screen import escape_unprintable

EDITORS = ("nano", "vi")


def change_config(options: argparse.Namespace) -> int:
    """Run `path`, `edit` or `set`, and return the exit code.

    Raises:
        ConfigError: there is no place for the file, or what would be written is not valid; the file is as it was.
    """
    named = config_file(options)
    file = Path(named).expanduser() if named else user_file(os.environ)
    if file is None:
        raise ConfigError("there is no place for a configuration: HOME is not set; set it, or EVERTURN_CONFIG")
    if options.about == "path":
        print(escape_unprintable(str(file)))
        return 0
    return _edit(file) if options.about == "edit" else _set(file, options.key, options.value)


def _edit(file: Path) -> int:
    from shutil import which

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(which, EDITORS), "")
    if not editor:
        raise ConfigError(f"there is no editor: set EDITOR, or edit {file} yourself")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        code = subprocess.call([*shlex.split(editor), str(file)])
    except (OSError, ValueError) as error:
        raise ConfigError(f"{editor} cannot be started ({error}); set EDITOR to another one") from None
    if code:
        print(f"everturn: {editor} ended with {code}; {file} is not checked", file=sys.stderr)
        return 1
    if file.exists():
        load_config(str(file))
        print(f"{file}: the configuration is valid")
    return 0


def _set(file: Path, key: str, value: str) -> int:
    with lock_file(file):
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        text, shown = set_value(before, key, value)
        trial = file.with_name(f".{file.name}.trial-{os.getpid()}.toml")
        try:
            write_private(trial, text.encode())
            load_config(str(trial))
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(trial), str(file))) from None
        finally:
            trial.unlink(missing_ok=True)
        write_private(file, text.encode())
    print(f"{escape_unprintable(key)} = {escape_unprintable(shown)}   ({file})")
    return 0
