"""Texts of the first run: its language, and the template of the configuration file it writes. Messages are in the catalogues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everturn.localization import Language

CONFIG_TEMPLATE: Final = """\
# Everturn configuration, created on the first start. Edit this file, or use `everturn config set KEY VALUE`.
# `everturn config check` reports errors. `everturn config show` prints every value and where it comes from.

# The model. {about}
# To use another model, write vendor:model, such as "openai:gpt-5.2" or "anthropic:claude-opus-5". `everturn models` lists
# models, and `everturn auth login` stores an API key. If you delete this file, `everturn` asks for a model again.
{toml}# system = "You are brief."            # system prompt
# budget = {{ cost = 1.00, calls = 40 }}   # limits of a turn: US dollars and tool calls (default: none)

# The assistant that `everturn` starts in a folder. It reads files there, and asks before it edits one or runs a command.
# [assistant]
# mode = "ask"                         # plan, ask (default) or auto_edit; Shift+Tab changes it
# git = "ask"                          # ask (default); commit: commits need no separate approval; off: read-only
# network = ["docs.python.org"]        # sites that it may read without asking (default: none); it could send data there

# Tools of `everturn chat` and `everturn serve`. All tools are off by default.
# [tools]
# files = "/home/you/project:ro"       # read a folder; without :ro also write, after you approve the diff
# web = true                           # fetch pages from the public web; your own network is blocked
# python = ["/home/you/tools.py"]      # your own functions, decorated with @tool

# Permission rules. Deny overrides ask, and ask overrides allow. `everturn permissions explain` shows which rule decides.
# [[permissions]]
# tool = "write_file"
# match = {{ path = "notes/**" }}
# action = "allow"

# The file or database that stores sessions. Default: {store}
# [store]
# url = "/home/you/talks.db"
"""
MODEL_COMMENTS: Final[Mapping[str, str]] = {
    "key": "Its API key is read from the environment variable {name} and is not stored in this file.",
    "server": "{name} serves it on this machine, at {address}.",
    "stored": "Its API key is stored by `everturn auth` for {vendor}, and not in this file.",
    "url": "The server at {address} provides it.",
    "demo": "It is an offline demo and not a real model; it needs no API key and no network.",
}


def detect_language(environ: Mapping[str, str]) -> Language:
    """Return the language of the locale if there are messages in it, else English."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"
