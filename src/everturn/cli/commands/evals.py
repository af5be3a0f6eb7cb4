"""`everturn eval`: evaluates a change on recorded sessions, and makes datasets from sessions."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from everturn.cli.config_options import config_file
from everturn.cli.output import print_error
from everturn.cli.store.backends import StoreBackend, open_backend
from everturn.core.events import TurnStarted
from everturn.core.ports import Model
from everturn.errors import ConfigError, EverturnError
from everturn.evals.branches import write_branches
from everturn.evals.change import EvalChange
from everturn.evals.dataset import Dataset, make_dataset, make_rated_dataset
from everturn.evals.evaluate import evaluate
from everturn.evals.report import ERROR, CaseResult, EvalReport
from everturn.evals.report_formats import FORMATS, from_json, summary_lines
from everturn.evals.run_turn import Depth
from everturn.stores.registry import get_store
from everturn.terminal.text.screen import escape_unprintable

MAKE = "make"
INSPECT_LOG = ".eval"
NO_FORMAT = "--report {file}: the ending says the format; there are: {endings}"


def eval_command(options: argparse.Namespace) -> int:
    """Run the command, and return the exit code."""
    try:
        if options.dataset == MAKE:
            return asyncio.run(_make(options))
        if options.session or options.output or options.rated:
            raise ConfigError("--session, --rated and --output make a dataset: write `everturn eval make`")
        dataset, report = asyncio.run(_evaluate(options))
        for line in summary_lines(report):
            print(escape_unprintable(line))
        for file in options.report:
            _write_report(Path(file), report, dataset, options.run)
        return report.exit_code
    except EverturnError as error:
        return print_error(str(error), ERROR)


async def _make(options: argparse.Namespace) -> int:
    if not (options.session or options.rated) or not options.output:
        raise ConfigError("`everturn eval make` needs --session ID or --rated up|down, and --output FOLDER")
    if options.rated and options.turn:
        raise ConfigError("--turn names one turn, and --rated finds them: leave one out")
    async with open_backend(options) as place:
        if not isinstance(place, StoreBackend):
            raise ConfigError(
                "a server exports whole sessions only: use `everturn export`, and put the files into a folder"
            )
        for session in options.session:
            await place.require_session(session)
        if options.rated:
            sessions = options.session or [info.id for info in await place.store.sessions()]
            for file in await make_rated_dataset(place.store, sessions, options.output, options.rated):
                print(f"wrote {escape_unprintable(str(file))}")
            return 0
        turn = options.turn
        if turn == "last":
            events = [entry.event for entry in await place.store.events(options.session[0])]
            turn = next((event.turn for event in reversed(events) if isinstance(event, TurnStarted)), "")
        for file in await make_dataset(place.store, options.session, options.output, turn):
            print(f"wrote {escape_unprintable(str(file))}")
    return 0


async def _evaluate(options: argparse.Namespace) -> tuple[Dataset, EvalReport]:
    for file in options.report:
        if Path(file).suffix == INSPECT_LOG:
            _inspect_bridge()  # before the evaluation costs anything
        elif Path(file).suffix not in FORMATS:
            raise ConfigError(NO_FORMAT.format(file=file, endings=", ".join([*FORMATS, INSPECT_LOG])))
    if options.branches and not options.run:
        raise ConfigError("--branches needs --run FOLDER, which stores the runs")
    dataset = Dataset.read(options.dataset)
    change, rules, tools, models = _changed(options, dataset)
    name = options.model or change.model
    depth = cast("Depth", options.depth or ("turn" if name else "pure"))
    against = _read_report(options.against) if options.against else None
    report = await evaluate(
        dataset,
        depth=depth,
        change=replace(change, model=""),
        model=models.get(name) or name or None,
        tools=tools,
        rules=rules,
        samples=options.samples,
        match=options.match,
        on_miss=options.on_miss,
        allow_tools=options.allow_tool,
        judge=models.get(options.judge) or options.judge or None,
        fork_at=options.fork_at,
        folder=options.run or None,
        against=against,
        divergent_limit=options.divergent_limit,
        progress=None if options.quiet else _print_case,
    )
    if options.branches:
        store = get_store(options.branches)
        try:
            for session in await write_branches(store, dataset, options.run):
                print(f"wrote session {escape_unprintable(session)}")
        finally:
            await store.aclose()
    return dataset, report


def _write_report(file: Path, report: EvalReport, dataset: Dataset, run: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == INSPECT_LOG:
            _inspect_bridge().write_inspect_log(report, dataset, file, run or None)
        else:
            file.write_text(FORMATS[file.suffix](report), encoding="utf-8")
    except OSError as error:  # not exit code 1: no case failed
        raise ConfigError(f"--report {file} cannot be written: {error.strerror or error}") from error


def _inspect_bridge() -> Any:
    """Return the bridge to Inspect.

    Raises:
        ConfigError: Inspect is not installed.
    """
    try:
        from everturn.evals.bridges import inspect_ai
    except ImportError as error:
        raise ConfigError(str(error)) from None
    return inspect_ai


def _print_case(case: CaseResult) -> None:
    count = f" {case.passed}/{len(case.samples)}" if len(case.samples) > 1 else ""
    print(f"{case.status}{count} {escape_unprintable(case.name)}")
    for sample in case.samples:
        for line in [*sample.reasons, *sample.decisions]:
            print(f"  {escape_unprintable(line)}")


def _read_report(file: str) -> EvalReport:
    try:
        return from_json(Path(file).read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"--against {file}: this is not a JSON report of everturn eval: {error}") from error


def _changed(
    options: argparse.Namespace, dataset: Dataset
) -> tuple[EvalChange, Sequence[Any], list[Any], dict[str, Model]]:
    """Return the change, the rules of the app, today's tools, and the models of the configuration."""
    from everturn.permissions.rules_file import load_rules
    from everturn.terminal.text.tool_loader import load_tools

    change = EvalChange.read(options.change) if options.change else EvalChange()
    rules: Sequence[Any] = ()
    tools = load_tools(options.tools)
    models: dict[str, Model] = {}
    if config_file(options):
        change, rules, configured, models = _configured(options, dataset, change)
        tools = [*configured, *tools]
    if options.system is not None and options.system_file:
        raise ConfigError("use --system or --system-file, not both")
    if options.system is not None:
        change = replace(change, system=options.system)
    if options.system_file:
        change = replace(change, system=_read_text(options.system_file))
    if options.permissions:
        change = replace(change, rules=load_rules(options.permissions))
    return change, rules, tools, models


def _configured(
    options: argparse.Namespace, dataset: Dataset, change: EvalChange
) -> tuple[EvalChange, Sequence[Any], list[Any], dict[str, Model]]:
    """Take rules, Python tools and models of a configuration; and the instructions and rules of the agent."""
    from everturn.config.load import load_config
    from everturn.config.models import make_model
    from everturn.config.tools import load_tools

    loaded = load_config(config_file(options))
    agent = options.agent
    if agent and agent not in loaded.config.agents:
        names = ", ".join(loaded.config.agents) or "none"
        raise ConfigError(f"there is no agent {agent!r} in {options.config}; there are: {names}")
    if agent and change.system is None:
        change = replace(change, system=loaded.systems.get(agent, loaded.config.agents[agent].system))
    if agent:
        change = replace(change, own_rules=loaded.agent_rules.get(agent))
    tools: list[Any] = []
    for at, name in enumerate(loaded.config.tools.python):
        where = loaded.tree.where(("tools", "python", at))
        tools += load_tools(name, Path(where.source).resolve().parent if where.line else None)
    wanted = {options.model or change.model, options.judge} & set(loaded.config.models)
    tables = loaded.config.models
    models = {name: make_model(name, tables[name], os.environ, tables) for name in wanted}
    return change, loaded.rules, tools, models


def _read_text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--system-file {file} cannot be read: {error}") from error
