"""`everturn chat`, line by line: what was said on a command line → a conversation in scrollback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from everturn.cli.saying import complain, is_terminal, wants_color
from everturn.core.canonical import clean
from everturn.core.options import Budget, TurnOptions

if TYPE_CHECKING:
    from everturn.terminal.answer import Typesets

NO_STORE: Final = "--session names a conversation in a --store; say which, such as --store talks.db"


def chat(options: argparse.Namespace) -> int:
    """Talk until whoever talks leaves, to the agent that is configured, with what the command line adds.

    Raises:
        ConfigError: there is no such model, file, folder, tool or rule; StoreBusy, StoreUnavailable: of the store.
    """
    if sys.stdin is None:  # `<&-`
        return complain("there is nothing to read: the input is closed", 2)
    if options.session and not options.store:
        return complain(NO_STORE, 2)
    from everturn.cli.run_here import agent_of, finder
    from everturn.cli.run_reading import config_file
    from everturn.config.demo import demo_tools
    from everturn.config.loading import load
    from everturn.config.tools import bring
    from everturn.models.offline import OFFLINE
    from everturn.permissions.reading import load_rules
    from everturn.terminal import talk

    loaded = load(config_file(options))
    spec, name = agent_of(loaded, "", clean(options.model or ""))
    configured = bring(loaded, os.environ, True)
    begin = talk.Options(
        name,
        clean(options.system) or spec.system,
        wants_color(options),
        is_terminal(sys.stdin) and is_terminal(sys.stdout),
        tuple(options.attach),
        options.save,
        options.store,
        clean(options.session),
        tuple(options.tools),
        _turn(options, spec, talk.read_budget),
        talk.Reach(
            options.files,
            options.virtual_files,
            options.code,
            options.shell,
            options.web,
            tuple(options.mcp),
        ),
        talk.Configured(
            (*configured.tools, *(demo_tools() if name == OFFLINE else ())),
            tuple(configured.plugins),
            (*loaded.rules, *(load_rules(options.permissions) if options.permissions else ())),
        ),
        _typeset(wants_color(options)),
    )
    return talk.talk(begin, finder(loaded, name, options.base_url))


def _turn(options: argparse.Namespace, spec: TurnOptions, read_budget: Callable[[str], Budget]) -> TurnOptions:
    """What holds for turns: what the agent says, and what the command line says instead."""
    said: dict[str, Any] = {"result": options.review} if options.review != "auto" else {}
    said |= {"by_hand": (*spec.by_hand, *options.by_hand)}
    said |= {"budget": read_budget(options.budget)} if options.budget else {}
    return replace(spec, system="", **said)  # the prompt is the chat's


def _typeset(color: bool) -> Callable[[], Typesets] | None:
    """What makes headings, lists and code of markdown, where that can be seen and rich is installed."""
    if not color or find_spec("textual") is None:
        return None
    from everturn.tui.scrollback import Scrollback, can_typeset

    return (lambda: Scrollback(sys.stdout)) if can_typeset(sys.stdout, color) else None
