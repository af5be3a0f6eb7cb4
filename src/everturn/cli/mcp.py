"""`everturn mcp`: an agent served to other programs, and the MCP servers that a file names: are they well, and trusted?"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everturn.cli.mcp_words import mcp_parser as _parser
from everturn.cli.saying import long_wait
from everturn.core.canonical import clean
from everturn.core.options import TurnOptions
from everturn.errors import ConfigError, NeedsLogin, StoreBusy, StoreUnavailable

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.trust import ToolFacts
    from everturn.mcp_server.stdio import Wire

NO_MODEL = "which model? For example `everturn mcp serve --model openai:gpt-5.2` with OPENAI_API_KEY set"
PATIENCE = 15.0  # seconds a server has to say what it has

_nowhere = logging.NullHandler()


def mcp(argv: Sequence[str]) -> int:
    """Do what the words behind `everturn mcp` ask, and return the exit code."""
    words = list(argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, "serve")
    options = _parser().parse_args(words)
    try:
        if options.command == "serve":
            return _serve(options)
        return asyncio.run(_look_after(options))
    except (ConfigError, NeedsLogin, StoreBusy, StoreUnavailable) as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt:
        return 130


def _serve(options: argparse.Namespace) -> int:
    name = clean(options.model or os.environ.get("EVERTURN_MODEL", ""))
    if not name:
        return _complain(NO_MODEL, 2)
    # stdout is the protocol's.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    from everturn.models.named import named

    return asyncio.run(serve(named(name, base_url=options.base_url), options))


async def serve(model: Any, options: argparse.Namespace) -> int:
    """Serve an agent with this model until the client leaves, or somebody stops it."""
    from everturn.mcp_server import protocol_only

    if options.http is not None:
        return await _serve_on(model, options, None)
    with protocol_only() as wire:  # before anything is loaded that might print
        return await _serve_on(model, options, wire)


async def _serve_on(model: Any, options: argparse.Namespace, wire: Wire | None) -> int:
    from everturn.mcp_server import AgentServer, serve_http, serve_stdio
    from everturn.permissions.reading import load_rules
    from everturn.terminal.loading import load_tools, read_budget
    from everturn.turn.run import Prompt, Settings
    from everturn.wiring import Runtime

    rules = load_rules(options.permissions) if options.permissions else []
    runtime = Runtime(
        model,
        tools=load_tools(options.tools),
        rules=rules,
        store=options.store or None,
        settings=Settings(prompt=Prompt(agent=clean(options.system))),
    )
    turn = TurnOptions(budget=read_budget(options.budget))
    agent = AgentServer(runtime, model=model.name, name=options.name or "everturn", options=turn, rules=rules)
    try:
        await runtime.start()
        if wire is not None:
            await serve_stdio(agent, wire)
        else:
            token = os.environ.get("EVERTURN_MCP_TOKEN", "")
            made = token or secrets.token_urlsafe(32)

            def ready(address: str) -> None:
                _say(f"serving at {address}" + ("" if token else f" with the token {made}"))

            await serve_http(agent, options.http, made, ready)
    finally:
        await runtime.aclose()
    return 0


async def _look_after(options: argparse.Namespace) -> int:
    from everturn.mcp.config import read_servers
    from everturn.mcp.trust import TrustFile, default_trust_path, visible

    # What libraries log of a server is in its status; where nobody has set up logging Python would print it.
    logging.getLogger().addHandler(_nowhere)
    specs = read_servers(options.file)
    trust = TrustFile(options.trust_file or default_trust_path())
    if options.command == "list":
        worst = 0
        for name, spec in specs.items():
            if isinstance(spec, ConfigError):
                _print(f"{visible(name)}: {visible(str(spec))}")
                worst = max(worst, 1)
            else:
                worst = max(worst, await _list(spec, trust, options.file))
        return worst
    found = specs.get(options.server)
    if isinstance(found, ConfigError):
        raise found
    if found is None:
        there = ", ".join(specs) or "none"
        raise ConfigError(f"{options.file} names no server {options.server!r}; there are: {there}")
    if options.command == "login":
        return await _login(found, options.open)
    return await _trust(found, trust, options)


async def _list(spec: ServerSpec, trust: Any, file: str) -> int:
    from everturn.mcp.trust import visible

    _print(f"{spec.name}: {visible(spec.line)}")
    if not trust.launch(spec):
        for line in trust.changes(spec):
            _print(f"  {line}")
        _print(f"  not trusted, so it was not started: everturn mcp trust {shlex.quote(visible(file))} {spec.name}")
        return 3
    facts, why = await look(spec)
    if why:
        _print(f"  not well: {visible(why)}")
        return 1
    known = trust.tools(spec.name, {fact.name: fact.hash for fact in facts})
    _print(f"  ready, {len(facts)} tools")
    for fact in facts:
        _print(f"    {visible(fact.name)}{'' if fact.name in known else '  (not trusted)'}")
    changed = trust.changes(spec, facts)
    for line in changed:
        _print(f"  {line}")
    return 3 if changed else 0


async def _trust(spec: ServerSpec, trust: Any, options: argparse.Namespace) -> int:
    if options.forget:
        trust.forget(spec.name)
        _print(f"{spec.name} is not trusted any more")
        return 0
    known = trust.changes(spec)
    for line in known:
        _print(line)
    # To see its tools is to start it: that is asked about first.
    if not trust.launch(spec) and not _agreed(f"start {spec.name} to see its tools?", options.yes):
        return 4
    facts, why = await look(spec)
    if why:
        raise ConfigError(f"{spec.name} cannot be looked at, so nothing was trusted: {why}")
    changed = trust.changes(spec, facts)
    for line in changed[len(known) :]:  # the launch comes first, and was shown
        _print(line)
    if changed and not _agreed(f"trust {spec.name} and its {len(facts)} tools as they are now?", options.yes):
        return 4
    trust.trust(spec, {fact.name: fact.hash for fact in facts}, facts)
    _print(f"{spec.name} is trusted, with {len(facts)} tools")
    return 0


async def _login(spec: ServerSpec, opens: bool) -> int:
    from everturn.mcp.oauth import login
    from everturn.mcp.trust import visible

    def show(address: str) -> None:
        _print(f"open this in a browser on this machine:\n{visible(address)}")
        if opens:
            import webbrowser

            webbrowser.open(address)

    await login(spec, token_folder(), show)
    _print(f"logged in to {spec.name}")
    return 0


def token_folder() -> Path:
    """Where tokens are kept."""
    from everturn.mcp.trust import default_trust_path

    return default_trust_path().parent / "mcp-tokens"


async def look(spec: ServerSpec) -> tuple[list[ToolFacts], str]:
    """What a server says of its tools, as turns would be told of them, or why it says nothing."""
    from everturn.mcp.servers import McpServers
    from everturn.mcp.trust import visible

    servers = McpServers([spec], patience=PATIENCE, tokens=token_folder())
    try:
        with long_wait(f"asking {visible(spec.name)}"):
            await servers.open(lambda origin, tools: None)
        (status,) = servers.status()
        if status.state == "ready":
            return servers.facts(spec.name), ""
        return [], f"{status.state}: {status.reason}" if status.reason else status.state
    finally:
        await servers.aclose()


def _agreed(question: str, yes: bool) -> bool:
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError("there is nobody to ask; read what is said above, and say --yes")
    # Nothing else runs here, and a thread that reads cannot be woken: Ctrl-C would have to wait for Enter.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


def _print(text: str) -> None:
    print(text)


def _say(text: str) -> None:
    print(f"everturn: {text}", file=sys.stderr, flush=True)


def _complain(text: str, code: int) -> int:
    from everturn.mcp.trust import visible

    _say(visible(text))  # a server may have had its say in it
    return code
