"""First run: bare `everturn` on a machine without a configuration asks for a model, writes the configuration, and
starts the chat.

The question comes once. With a configuration, or a model in the environment, the chat starts at once.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from everturn import api
from everturn.cli.first_run_texts import CONFIG_TEMPLATE, MESSAGES, MODEL_COMMENTS, detect_language
from everturn.config.discovery import LOCAL_SERVERS, LocalModelServer, discover_models, server_setup
from everturn.config.layers import SYSTEM_FILE, user_file
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model, make_model
from everturn.config.tools import data_folder
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model
from everturn.terminal.text.screen import escape_unprintable

AGENT: Final = "assistant"
MAX_MODELS_PER_SERVER: Final = 5  # models offered per server
UNUSABLE, INTERRUPTED = 2, 130


class ModelChoice(Struct, frozen=True):
    """A model that the user can choose: its line in the menu, and the configuration written for it."""

    line: str
    model: str
    about: str
    toml: str


def start_first_run() -> int:
    """Ask which model to use if none is configured, then start the chat; return the exit code."""
    words, environ = MESSAGES[detect_language(os.environ)], os.environ
    file = user_file(environ)
    if is_configured(file, environ):
        return _chat()
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        return _complain(words["no_terminal"].format(file=file or "~/.config/everturn/everturn.toml"))
    if file is None:
        return _complain(words["no_place"])
    try:
        choice = _choose(list_model_choices(environ, words, LOCAL_SERVERS), words, file)
    except EOFError:
        print(f"\n{words['left']}")
        return 0
    except KeyboardInterrupt:
        print(f"\n{words['left']}")
        return INTERRUPTED
    try:
        write_config(file, render_config(choice, environ))
    except FileExistsError:
        pass  # another first run was faster, and its configuration counts
    except OSError as error:
        reason = error.strerror or str(error)
        return _complain(words["unwritable"].format(file=file, why=reason, model=choice.model))
    print(words["written"].format(file=file))
    return _chat()


def is_configured(file: Path | None, environ: Mapping[str, str]) -> bool:
    """Whether a model is set in the environment, or a configuration file exists (even an incomplete one)."""
    if any(environ.get(name, "").strip() for name in ("EVERTURN_MODEL", "EVERTURN_CONFIG")):
        return True
    return any(os.path.lexists(path) for path in (file, SYSTEM_FILE) if path is not None)


def list_model_choices(
    environ: Mapping[str, str], words: Mapping[str, str], places: Sequence[LocalModelServer]
) -> list[ModelChoice]:
    """List the models that can answer here: by API keys in the environment, by local model servers, and the offline
    demo."""

    async def look() -> list[api.ModelSource]:
        return (await discover_models(load_config(None, environ), environ, places)(AGENT, "")).options

    choices: list[ModelChoice] = []
    for way in asyncio.run(look()):
        server = next((candidate for candidate in places if candidate.name == way.name), None)
        for model in way.models[:MAX_MODELS_PER_SERVER]:
            toml = way.toml if server is None else server_setup(server, [model], AGENT, ()).toml
            fields = {"model": escape_unprintable(model), "name": way.name, "address": way.address}
            choices.append(
                ModelChoice(words[way.kind].format(**fields), model, MODEL_COMMENTS[way.kind].format(**fields), toml)
            )
    demo = f'[agents.{AGENT}]\nmodel = "{OFFLINE}"\n'
    return [*choices, ModelChoice(words["demo"], OFFLINE, MODEL_COMMENTS["demo"], demo)]


def _choose(choices: Sequence[ModelChoice], words: Mapping[str, str], file: Path) -> ModelChoice:
    print(words["welcome"])
    for number, choice in enumerate(choices, 1):
        print(f"  {number}  {choice.line}")
    print(words["again"].format(file=file))
    while True:
        reply = input(words["which"].format(count=len(choices))).strip() or "1"
        if reply.isdecimal() and len(reply) < 4 and 1 <= int(reply) <= len(choices):
            return choices[int(reply) - 1]
        print(words["none"].format(said=escape_unprintable(reply), count=len(choices)))


def render_config(choice: ModelChoice, environ: Mapping[str, str]) -> str:
    """Render the configuration file for a choice, with comments on each setting."""
    return CONFIG_TEMPLATE.format(
        about=choice.about, toml=choice.toml, store=escape_unprintable(str(data_folder(environ) / "everturn.db"))
    )


def write_config(file: Path, text: str) -> None:
    """Write a file for its owner alone: completely or not at all, and never over an existing file.

    Raises:
        FileExistsError: the file exists by now.
        OSError: the file cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(partial, file)  # unlike a rename, a link never replaces a file
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
                opened.write(text)
    finally:
        with suppress(OSError):
            partial.unlink()


def _chat() -> int:
    """Start the configured chat: full-screen where possible, else line by line."""
    from everturn.cli.args.commands import make_parser
    from everturn.cli.commands import chat

    try:
        model_arguments = make_model_arguments(load_config(os.environ.get("EVERTURN_CONFIG") or None), os.environ)
    except ConfigError as error:
        return _complain(str(error))
    if not chat.find_tui_obstacle(make_parser().parse_args(["chat"])):
        return chat.start_default_chat()
    return chat.chat(make_parser().parse_args(["chat", *model_arguments]))


def make_model_arguments(loaded: LoadedConfig, environ: Mapping[str, str]) -> list[str]:
    """Return the configured model as command-line arguments.

    Raises:
        ConfigError: the model is not available here; the text says which line names it, and what is missing.
    """
    name, agent = next(iter(loaded.config.agents.items()), ("", None))
    wanted = (agent.model if agent is not None else "") or default_model(environ)
    table = loaded.config.models.get(wanted)
    try:
        if table is not None:
            make_model(wanted, table, environ)
        else:
            get_model(wanted, environ=environ)
    except ConfigError as error:
        path = ("models", wanted, "model") if table is not None else ("agents", name, "model")
        where = loaded.tree.where(path) if table is not None or (agent is not None and agent.model) else ""
        raise ConfigError(f"{where}: {error}" if where else str(error)) from None
    if table is None:
        return ["--model", wanted]
    return ["--model", table.model, *(["--base-url", table.base_url] if table.base_url else [])]


def _is_terminal(stream: object) -> bool:
    return stream is not None and bool(getattr(stream, "isatty", bool)())


def _complain(text: str) -> int:
    print(f"everturn: {escape_unprintable(text)}", file=sys.stderr)
    return UNUSABLE
