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
from getpass import getpass
from pathlib import Path
from typing import Final

from msgspec import MsgspecError, Struct
from msgspec.structs import replace

from everturn import api
from everturn.cli.first_run_texts import CONFIG_TEMPLATE, MODEL_COMMENTS, detect_language
from everturn.config.available_models import check_vendor_key, list_server_models
from everturn.config.discovery import EXAMPLES, LOCAL_SERVERS, LocalModelServer, discover_models, server_setup
from everturn.config.key_store import KEY_VARIABLES, KeyStore, check_key, guess_key_vendor, use_stored_keys
from everturn.config.layers import SYSTEM_FILE, user_file
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model, make_model
from everturn.config.tool_probe import PROBE_SECONDS, has_native_tools, with_prompted_tools
from everturn.config.tools import data_folder
from everturn.errors import ConfigError
from everturn.localization import load_group
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model
from everturn.models.vendors import VENDORS
from everturn.terminal.text.screen import escape_unprintable

AGENT: Final = "assistant"
MAX_MODELS_PER_SERVER: Final = 5  # models offered per server
SHORTEST_KEY: Final = 16  # characters
UNUSABLE, INTERRUPTED = 2, 130


class ModelChoice(Struct, frozen=True):
    """A model that the user can choose: its line in the menu, and the configuration written for it."""

    line: str
    model: str
    about: str
    toml: str
    is_local: bool = False  # a server of the user's has it


def start_first_run(arguments: Sequence[str] = ()) -> int:
    """Ask which model to use if none is configured, then start the chat with these arguments; return the exit code."""
    words, environ = load_group("first_run", detect_language(os.environ)), os.environ
    file = user_file(environ)
    if is_configured(file, environ):
        return _chat(arguments)
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        return _complain(words["no_terminal"].format(file=file or "~/.config/everturn/everturn.toml"))
    if file is None:
        return _complain(words["no_place"])
    try:
        keys = use_stored_keys(environ)
        choice = _choose(list_model_choices(environ, words, LOCAL_SERVERS), words, file, keys)
    except EOFError:
        print(f"\n{words['left']}")
        return 0
    except KeyboardInterrupt:
        print(f"\n{words['left']}")
        return INTERRUPTED
    choice = probe_tools(choice, words)
    try:
        write_config(file, render_config(choice, environ))
    except FileExistsError:
        pass  # another first run was faster, and its configuration counts
    except OSError as error:
        reason = error.strerror or str(error)
        print(words["unwritable"].format(file=file, why=reason, model=choice.model))
        os.environ["EVERTURN_MODEL"] = choice.model  # for this start; it is asked again
        return _chat(arguments)
    print(words["written"].format(file=file))
    return _chat(arguments)


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
            others = [other for other in way.models if other != model]
            toml = way.toml if server is None else server_setup(server, [model, *others], AGENT, ()).toml
            fields = {"model": escape_unprintable(model), "name": way.name, "address": way.address}
            choices.append(
                ModelChoice(
                    words[way.kind].format(**fields),
                    model,
                    MODEL_COMMENTS[way.kind].format(**fields),
                    toml,
                    is_local=way.kind == "server",
                )
            )
    demo = f'[agents.{AGENT}]\nmodel = "{OFFLINE}"\n'
    return [*choices, ModelChoice(words["demo"], OFFLINE, MODEL_COMMENTS["demo"], demo)]


def _choose(choices: Sequence[ModelChoice], words: Mapping[str, str], file: Path, keys: KeyStore) -> ModelChoice:
    print(words["welcome"])
    for number, choice in enumerate(choices, 1):
        print(f"  {number}  {choice.line}")
    print(f"  k  {words['paste_key']}\n  u  {words['paste_url']}")
    print(words["again"].format(file=file))
    while True:
        reply = input(words["which"]).strip() or "1"
        if reply.isdecimal() and len(reply) < 4 and 1 <= int(reply) <= len(choices):
            return choices[int(reply) - 1]
        try:
            if choice := _choose_other(reply, words, keys):
                return choice
        except ConfigError as error:
            print(escape_unprintable(str(error)))
            continue
        print(words["none"].format(reply=escape_unprintable(reply), count=len(choices)))


def _choose_other(reply: str, words: Mapping[str, str], keys: KeyStore) -> ModelChoice | None:
    """Return the model of a key or a URL, which may be pasted at once; None: the reply is neither.

    Raises:
        ConfigError: the key is refused, or the server does not answer.
    """
    if reply.lower() == "k":
        return choose_by_key(getpass(words["key_prompt"]), words, keys)
    if reply.lower() == "u":
        reply = input(words["url_prompt"]).strip()
    if reply.lower().startswith(("http://", "https://")):
        return choose_by_url(reply, words)
    return choose_by_key(reply, words, keys) if len(reply) >= SHORTEST_KEY and " " not in reply else None


def choose_by_key(text: str, words: Mapping[str, str], keys: KeyStore) -> ModelChoice:
    """Store a pasted key, and return the usual model of its vendor.

    Raises:
        ConfigError: it is no key, its vendor refuses it, or it cannot be stored.
    """
    key = check_key(text)
    vendor = guess_key_vendor(key)
    names = [vendor for vendor in KEY_VARIABLES.values() if VENDORS[vendor].key in EXAMPLES]
    if not vendor:
        vendor = input(words["whose"].format(vendors=", ".join(names))).strip().lower()
        if vendor not in names:
            raise ConfigError(words["no_vendor"].format(vendor=vendor))
    check = check_vendor_key(vendor, key)
    if check.is_refused:
        raise ConfigError(words["refused"].format(vendor=vendor))
    variable = VENDORS[vendor].key
    print(words["stored"].format(vendor=vendor, place=keys.save(variable, key)))
    if not check.models:
        print(words["unchecked"].format(why=check.problem))
    model = EXAMPLES[variable]
    about = MODEL_COMMENTS["stored"].format(vendor=vendor)
    return ModelChoice(model, model, about, f'[agents.{AGENT}]\nmodel = "{model}"\n')


def choose_by_url(url: str, words: Mapping[str, str]) -> ModelChoice:
    """Return the first model of an OpenAI-compatible server; `/v1` is added where it is missing.

    Raises:
        ConfigError: nothing that has models answers there.
    """
    url = url.rstrip("/")
    problem: object = ""
    for base in dict.fromkeys((url, f"{url}/v1")):
        try:
            names = list_server_models(base)
        except (OSError, ValueError, MsgspecError) as error:
            problem = getattr(error, "reason", None) or error
            continue
        if names:
            place = LocalModelServer(base, 0, "compatible")
            toml = server_setup(place, names, AGENT, (), base_url=base).toml
            print(words["server_models"].format(url=base, models=", ".join(names[:MAX_MODELS_PER_SERVER])))
            about = MODEL_COMMENTS["url"].format(address=base)
            return ModelChoice(names[0], names[0], about, toml, is_local=True)
    raise ConfigError(words["no_server"].format(url=url, why=problem or words["no_models"]))


def probe_tools(choice: ModelChoice, words: Mapping[str, str]) -> ModelChoice:
    """Return the choice with prompted tool calling if its model is on a server of the user's and does not call a tool."""
    if not choice.is_local:
        return choice
    model = escape_unprintable(choice.model)
    print(words["probing"].format(model=model, seconds=round(PROBE_SECONDS)))
    try:
        if asyncio.run(has_native_tools(choice.toml, os.environ)) is not False:
            return choice
    except KeyboardInterrupt:
        return choice
    print(words["prompted"].format(model=model))
    return replace(choice, toml=with_prompted_tools(choice.toml))


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


def _chat(arguments: Sequence[str]) -> int:
    """Start the configured chat: full-screen where possible, else line by line."""
    from everturn.cli.args.commands import make_chat_parser
    from everturn.cli.commands import chat

    try:
        model_arguments = make_model_arguments(load_config(os.environ.get("EVERTURN_CONFIG") or None), os.environ)
    except ConfigError as error:
        return _complain(str(error))
    if not chat.find_tui_obstacle(make_chat_parser().parse_args(["chat"])):
        return chat.start_default_chat(arguments)
    return chat.chat(make_chat_parser().parse_args(["chat", *model_arguments]))


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
