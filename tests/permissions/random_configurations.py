"""Random configurations: what `everturn permissions explain` and `POST /api/explain` say of a call, and what becomes of it.

    python -m tests.permissions.random_configurations 2000              # configurations, by hand
    python -m tests.permissions.random_configurations 2000 --processes  # with `everturn run` and `permissions explain` as processes

Each configuration has rules in its file, in its agents and in a file of `--permissions`, tools of every kind and, some of
them, remembered answers, given as a person gives them. The call is explained by the functions behind the command line
and the route, then made: by a chat put together by `run_here.assemble`, as `everturn run` is, and by a turn of a server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace
from tests.helpers.cli_run import run
from tests.helpers.tenants import settle, somebody, start_session
from tests.helpers.waiting import wait_until
from tests.permissions import explained_tools

from everturn import Chat, api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.cli.args.commands import make_parser
from everturn.cli.commands import permissions
from everturn.cli.run.local import RunParts, assemble_run_parts, find_agent, make_agents_for
from everturn.config.agents import configured_agents
from everturn.config.build import app_factory
from everturn.config.load import LoadedConfig, load_config
from everturn.core.events import CallStarted, Event, GateOpened, PermissionDecided, TurnStarted
from everturn.errors import ConfigError, UnknownTool
from everturn.stores.memory import MemoryStore
from everturn.stores.registry import get_store
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.provider import Call, Provider, Say

TOOLS = ("look", "write", "shell", "shout", "note", "launch")
NAMES = (*TOOLS, *TOOLS, "*", "?*", "sh*", "*o*", "write_file")
PATHS = ("notes/a.md", "notes/new.md", "src/b.py", "../up", "/etc/passwd", "notes/../c.md")
COMMANDS = (
    "git log -3",
    "git log | head -5",
    "ls",
    "rm -rf x",
    "python3 -m unittest -q | tail -5",
    "echo $(date)",
    "if",
)
TEXTS = ("hello", "now", "Dear Ada")
PATTERNS = {
    "path": ("**", "notes/**", "notes/*", "src/b.py", "/etc/**"),
    "command": ("*", "git *", "git log *", "head *", "python3 *", "tail *", "rm *", "!python *", "echo *"),
    "text": ("*", "hello", "Dear *"),
}
EXPLAIN = [sys.executable, "-m", "everturn", "permissions", "explain"]
OUTCOMES = {"allow": "ran", "ask": "asked", "deny": "denied"}


class Case(NamedTuple):
    """A configuration, and the calls that are made under it."""

    config: str
    permissions: str
    agent: str
    first: tuple[str, dict[str, str]]  # is answered with `always` where that is offered; then
    second: tuple[str, dict[str, str]]
    has_grant: bool


def make_case(seed: int) -> Case:
    """A random one."""
    dice = random.Random(seed)
    agents = ("one", "two")
    lines = [f"[tools]\npython = [{msgspec.json.encode(explained_tools.__file__).decode()}]\n"]
    for agent in agents:
        lines.append(f'[agents.{agent}]\nmodel = "offline:demo"\n')
        if dice.random() < 0.2:
            lines.append(f"tools = {list(dice.sample(TOOLS, 4))}\n")
        lines += [_rule(dice, f"agents.{agent}.permissions") for _ in range(dice.choice((0, 0, 1, 2)))]
    lines += [_rule(dice, "permissions") for _ in range(dice.choice((0, 1, 2, 4)))]
    more = "\n".join(_rule(dice, "permissions") for _ in range(dice.choice((0, 0, 1))))
    second = _call(dice)
    if not second[1] and dice.random() < 0.7:  # rules look at defaults, too
        lines.append(
            f'[[permissions]]\ntool = "write"\nmatch = {{ path = "notes/*" }}\naction = "{dice.choice(("allow", "deny"))}"\n'
        )
    return Case(
        "\n".join(lines),
        more,
        dice.choice(("", *agents)),
        dice.choice((second, _call(dice))),
        second,
        dice.random() < 0.3,
    )


def _rule(dice: random.Random, table: str) -> str:
    match = ""
    if dice.random() < 0.6:
        name = dice.choice(tuple(PATTERNS))
        match = f'match = {{ {name} = "{dice.choice(PATTERNS[name])}" }}\n'
    action = dice.choice(("allow", "allow", "allow", "ask", "deny"))
    return f'[[{table}]]\ntool = "{dice.choice(NAMES)}"\n{match}action = "{action}"\n'


def _call(dice: random.Random) -> tuple[str, dict[str, str]]:
    name = dice.choice(TOOLS)
    if name == "write" and dice.random() < 0.4:
        return name, {}  # with its defaults, which rules look at too
    arguments = {
        "look": {"path": dice.choice(PATHS)},
        "write": {"path": dice.choice(PATHS), "text": dice.choice(TEXTS)},
    }
    arguments |= {"shell": {"command": dice.choice(COMMANDS)}, "shout": {"text": dice.choice(TEXTS)}}
    return name, arguments.get(name, {"text": dice.choice(TEXTS)})


def outcome(events: list[Event], turn: str) -> str:
    """What became of the call of a turn."""
    for event in events:
        if isinstance(event, CallStarted) and event.turn == turn:
            return "ran"
        if isinstance(event, GateOpened) and event.turn == turn:
            return "asked"
        if isinstance(event, PermissionDecided) and event.turn == turn and not event.allowed:
            return "denied"
    return "not offered"


def _script(case: Case) -> ScriptedModel:
    steps = [
        calls(call(name, **arguments))
        for name, arguments in ((case.first, case.second) if case.has_grant else (case.second,))
    ]
    return ScriptedModel(
        *(part for step in steps for part in (step, say("Done."))), *[say("Done.")] * 4, name="scripted"
    )


async def disagreement(case: Case, folder: Path, provider: Provider | None = None) -> tuple[str, str]:
    """What became of the call, and in which way an explanation was wrong ("" if both were right).

    With a provider the command line is run in processes of its own.
    """
    (folder / "c.toml").write_text(case.config, encoding="utf-8")
    (folder / "p.toml").write_text(case.permissions, encoding="utf-8")
    loaded = load_config(str(folder / "c.toml"), {"HOME": str(folder)})
    happened, predicted = await (_of_processes(case, folder, provider) if provider else _of_run(case, loaded, folder))
    if happened != predicted:
        return happened, f"everturn run: {happened}, and `permissions explain` says {predicted}"
    served, explained = await _of_server(case, loaded)
    return happened, "" if served == explained else f"the server: {served}, and /api/explain says {explained}"


# `everturn run` ----------------------------------------------------------------------------------------------------


def _words(case: Case, folder: Path) -> list[str]:
    more = ["--permissions", str(folder / "p.toml")] if case.permissions else []
    return ["--config", str(folder / "c.toml"), "--agent", case.agent, *more]


async def _parts(case: Case, loaded: LoadedConfig, options: argparse.Namespace, model: Any) -> RunParts:
    agents = make_agents_for(loaded, find_agent(loaded, case.agent), model, lambda _: model)
    return await assemble_run_parts(loaded, agents, options, print)


async def _of_run(case: Case, loaded: LoadedConfig, folder: Path) -> tuple[str, str]:
    options = make_parser().parse_args(["run", "go", *_words(case, folder)])
    store = str(folder / "talks.db") if case.has_grant else ""
    model = _script(case)
    parts = await _parts(case, loaded, options, model)
    app = parts.app(model, store)
    async with _chat(app, parts.options) as chat:
        if case.has_grant:
            await _answered(chat, "always")
        last = await _answered(chat, "once")
        happened = outcome([entry.event for entry in await app.store.events("s")], last)
    words = [case.second[0], msgspec.json.encode(case.second[1]).decode(), *_words(case, folder)]
    words += ["--store", store, "--session", "s"] if store else []
    predicted = await _explained(make_parser().parse_args(["permissions", "explain", *words]))
    return _same(happened, predicted)


async def _of_processes(case: Case, folder: Path, provider: Provider) -> tuple[str, str]:
    """As a person has it: two commands in a shell, the second one to ask what the first would have done."""
    store = ["--store", str(folder / "talks.db"), "--session", "s"]
    name, arguments = case.second
    if case.has_grant:
        await _grant(case, folder)
    steps = [[Call(name, msgspec.json.encode(arguments).decode())], [Say("Done.")]]
    provider.script(folder.name, steps, sequence=True)
    model = ["--model", folder.name, "--base-url", f"{provider.url}/v1"]
    done = await run(folder, "go", "--no-stdin", *model, *_words(case, folder), *store)
    assert done.code in {0, 3}, done
    database = get_store(str(folder / "talks.db"))
    try:
        events = [entry.event for entry in await database.events("s")]
    finally:
        await database.aclose()
    last = [event.turn for event in events if isinstance(event, TurnStarted)][-1]
    words = [name, msgspec.json.encode(arguments).decode(), *_words(case, folder), *(store if case.has_grant else ())]
    result = await run(folder, *words, command=EXPLAIN)
    if result.code == 2 and "there is no tool called" in result.err:
        predicted = "not offered"
    else:
        predicted = {0: "ran", 3: "asked", 4: "denied"}[result.code]
    return _same(outcome(events, last), predicted)


async def _grant(case: Case, folder: Path) -> None:
    """A remembered answer of an earlier turn, if one was offered."""
    loaded = load_config(str(folder / "c.toml"), {"HOME": str(folder)})
    options = make_parser().parse_args(["run", "go", *_words(case, folder)])
    model = _script(case)
    parts = await _parts(case, loaded, options, model)
    app = parts.app(model, str(folder / "talks.db"))
    async with _chat(app, parts.options) as chat:
        await _answered(chat, "always")


@asynccontextmanager
async def _chat(app: Any, options: Any) -> AsyncGenerator[Chat]:
    chat = Chat(app.model_for(""), app=app, session="s", options=options)
    try:
        yield chat
    finally:
        await app.aclose()


async def _answered(chat: Chat, how: str) -> str:
    """Send a message, and answer what asks; `always` where that is offered. Returns its turn."""
    turn = await chat.send("go")
    async for event in turn.events():
        if isinstance(event, GateOpened):
            always = how == "always" and bool(event.gate.offers)
            await chat.answer(event.gate, allow="always") if always else await chat.answer(event.gate, deny=True)
    return turn.id


async def _explained(options: argparse.Namespace) -> str:
    try:
        lines, code = await permissions.explain(options)
    except ConfigError as error:
        if "there is no tool called" not in str(error):
            raise
        return "not offered"
    assert lines
    return {0: "ran", 3: "asked", 4: "denied"}[code]


def _same(happened: str, predicted: str) -> tuple[str, str]:
    # A tool that is denied whatever its arguments is not offered, and a call of it fails as one of no tool.
    return ("denied" if happened == "not offered" and predicted == "denied" else happened), predicted


# A server ----------------------------------------------------------------------------------------------------------


async def _of_server(case: Case, loaded: LoadedConfig) -> tuple[str, str]:
    store = MemoryStore()
    app = app_factory(loaded, "offline:demo", {"HOME": "/"})(store=store)
    app.add_model(_script(case))
    agents = [
        replace(agent, options=replace(agent.options, model="scripted")) for agent in configured_agents(loaded, "", app)
    ]
    house = ServerContext(app, store.accounts, Agents(agents, default_limits=TenantLimits(requests=0)))
    await settle(house.accounts)
    await app.start()
    try:
        member, approver = Access(house, somebody()), Access(house, somebody(role="approver"))
        sent = await start_session(member, "go", agent=case.agent or agents[0].name)
        if case.has_grant:
            await _settled(approver, store, sent, "always")
            predicted = await _asked(member, case, sent.session)
            sent = await member.sessions.send(sent.session, api.NewMessage(text="go"))
        else:
            predicted = await _asked(member, case, None)
        await _settled(approver, store, sent, "once")
        return _same(outcome([entry.event for entry in await store.events(sent.session)], sent.turn), predicted)
    finally:
        await app.aclose()


async def _asked(access: Access, case: Case, session: str | None) -> str:
    name, arguments = case.second
    about = api.ExplainCall(tool=name, arguments=arguments, session=session, agent="" if session else case.agent)
    try:
        return OUTCOMES[(await access.admin.explain(about)).action]
    except UnknownTool:
        return "not offered"


async def _settled(access: Access, store: Any, sent: Any, how: str) -> None:
    """Wait for the end of a turn, and answer what asks on the way."""

    async def step() -> bool:
        for view in (await access.gates.page(sent.session)).gates:
            gate = view.gate
            is_always = how == "always" and bool(gate.offers)
            reply = (
                api.AnswerGate(hash=gate.hash, allow="always")
                if is_always
                else api.AnswerGate(hash=gate.hash, deny="no")
            )
            await access.gates.resolve(sent.session, gate.id, reply)
        return (await access.sessions.turn(sent.session, sent.turn)).phase.is_terminal

    await wait_until(step)


async def main(count: int, with_processes: bool) -> int:
    """Try so many, from a seed of their own."""
    first = int(time.time())
    found, wrong = Counter[str](), 0
    seeds = iter(range(first, first + count))

    async def work(provider: Provider | None) -> None:
        nonlocal wrong
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                happened, trouble = await disagreement(make_case(seed), Path(folder), provider)
            found[happened] += 1
            if trouble:
                wrong += 1
                print(seed, trouble, flush=True)

    if with_processes:
        async with Provider() as provider, asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(work(provider))
    else:
        await work(None)
    print(f"{count} configurations from {first}: {dict(found)}, {wrong} disagreements")
    return int(wrong > 0)


if __name__ == "__main__":
    os.environ.pop("EVERTURN_CONFIG", None)
    words = [word for word in sys.argv[1:] if word != "--processes"]
    sys.exit(asyncio.run(main(int(words[0]) if words else 100, "--processes" in sys.argv)))
