"""Texts of the first run: its language, and the template of the configuration file it writes. Messages are in the catalogues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everturn.localization import Language

CONFIG_TEMPLATE: Final = """\
# The configuration of Everturn. It was written by the first start, and is yours; `everturn config set` changes a value.
# `everturn config check` says whether it is valid, `everturn config show` which values apply, and from which line.

# The model. {about}
# Another one: vendor:model, such as "openai:gpt-5.2" or "anthropic:claude-opus-5"; `everturn models` lists them, and
# `everturn auth login` stores a key. Delete this file, and `everturn` asks again.
{toml}# system = "You are brief."            # instructions before every conversation
# budget = {{ cost = 1.00, calls = 40 }}   # what a turn may use

# `everturn` in a folder: it reads there, and asks before it edits or runs a command. Shift+Tab changes the mode.
# [assistant]
# mode = "ask"                         # plan, ask or auto_edit
# git = "ask"                          # commit: commits need no question of their own; off: the repository is read-only
# network = ["docs.python.org"]        # pages that it may read without asking; what it has read could be sent there

# Tools of `everturn chat` and `everturn serve`. Everything is off unless you turn it on here or on the command line.
# [tools]
# files = "/home/you/project:ro"       # read a folder; without :ro it also writes, once you have seen the diff
# web = true                           # pages of the public web, and none of your network
# python = ["/home/you/tools.py"]      # functions of your own, each with @tool above it

# What it may do: deny beats ask, and ask beats allow. `everturn permissions explain` says which rule decides.
# [[permissions]]
# tool = "write_file"
# match = {{ path = "notes/**" }}
# action = "allow"

# Where sessions are kept. Without this: {store}
# [store]
# url = "/home/you/talks.db"
"""
MODEL_COMMENTS: Final[Mapping[str, str]] = {
    "key": "Its key is read from {name} in the environment, and is not kept here.",
    "server": "{name} serves it at {address}, on this machine.",
    "stored": "The key of {vendor} is stored by `everturn auth`, and not here.",
    "url": "The server at {address} has it.",
    "demo": "This one needs no key and no network, and is no real model.",
}


def detect_language(environ: Mapping[str, str]) -> Language:
    """Return the language of the locale if there are messages in it, else English."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"
