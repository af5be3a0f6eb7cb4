"""Wider answers: an "always allow" also resolves other gates that it covers, and a denial may deny all open gates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from everturn.core.canonical_json import parse_object
from everturn.core.events import AgentSwitched, TurnStarted
from everturn.core.gates import GATE_KINDS_WITHOUT_CALL, Gate, GateResolution, Grant
from everturn.core.options import TurnOptions
from everturn.core.rules.policy import Rule
from everturn.core.state import TurnState
from everturn.errors import EverturnError, UnknownSession
from everturn.running.drive_setup import DriveSetup
from everturn.running.subagent_index import active_subagent_sessions


def build_grant(
    setup: DriveSetup, state: TurnState, gate: Gate, resolution: GateResolution, session: str, now: float
) -> Grant | None:
    """The grant of an answer: for the top-level session, or everywhere: for all, one user or one folder.

    A grant for a command covers only the user who started the turn: the approver saw that user. So does a grant for a
    tool that this process does not know. One for a user or a folder that nobody named holds in the session alone.
    """
    if resolution.grant is None:
        return None
    above = state.options.lineage
    top_session = above.session if above is not None else session
    rule = replace(resolution.grant, layer="grants", source=gate.id)
    limits = {"": "all", "user": state.options.by, "folder": state.options.folder}
    grant_session = "" if resolution.everywhere and limits[resolution.within] else top_session
    folder = state.options.folder if resolution.within == "folder" else ""
    tool = setup.for_turn(state.options).app.find_tool(gate.tool)
    is_for_user = tool is None or "command" in tool.spec.subjects.values()
    asker = state.options.by if is_for_user or resolution.within == "user" else ""
    until, identity = resolution.until, gate.identity
    return Grant(gate.id, rule, grant_session, resolution.by, now, until, gate.tool, identity, asker, folder)


def copy_answer(answered: Gate, resolution: GateResolution) -> GateResolution:
    """The same answer, for another gate."""
    return GateResolution(
        resolution.allowed, resolution.reason, by=f"{resolution.by or 'a person'}, with {answered.id}"
    )


async def does_answer_cover(setup: DriveSetup, gate: Gate, options: TurnOptions, grants: Sequence[Rule] | None) -> bool:
    """Whether an answer also resolves a gate: a denial of all (None) resolves every call, grants those that they cover."""
    if grants is None:
        return gate.kind not in ("result", *GATE_KINDS_WITHOUT_CALL)
    tool, arguments = setup.for_turn(options).app.find_tool(gate.tool), parse_object(gate.arguments)
    # A gate without offers always requires approval; and the targets of references were not checked by the rules here.
    if (
        gate.kind not in ("call", "loop")
        or not gate.offers
        or "$ref{" in gate.arguments
        or "$private{" in gate.arguments
    ):
        return False
    if tool is None or arguments is None or tool.spec.egress or setup.permissions.identity(tool.spec) != gate.identity:
        return False
    if gate.kind == "loop" and setup.permissions.decide_loop(gate.tool, options, grants).action != "allow":
        return False
    try:
        arguments = tool.validate(arguments) or arguments
        cases = await setup.permissions.read_cases(tool.spec, arguments, options, grants)
    except EverturnError:
        return False
    return setup.permissions.decide_cases(tool.spec, cases, options, grants).action == "allow"


async def open_gates_elsewhere(setup: DriveSetup, session: str) -> list[tuple[Gate, TurnOptions]]:
    """The open gates of other sessions, with the options of their turns."""
    return await _with_options(setup, [row.gate for row in await setup.store.gates() if row.gate.session != session])


async def open_gates_of_subagents(
    setup: DriveSetup, session: str, states: Iterable[TurnState]
) -> list[tuple[Gate, TurnOptions]]:
    """The open gates of these turns' sub-agent runs, at any depth, with the options of their turns."""
    gates: list[Gate] = []
    for name in await active_subagent_sessions(setup.store, session, states):
        gates += [row.gate for row in await setup.store.gates(name)]
    return await _with_options(setup, gates)


async def _with_options(setup: DriveSetup, gates: Iterable[Gate]) -> list[tuple[Gate, TurnOptions]]:
    with_options: list[tuple[Gate, TurnOptions]] = []
    for gate in gates:
        try:
            log = await setup.store.events(gate.session, turn=gate.turn)
        except UnknownSession:  # it was erased meanwhile
            continue
        options = [entry.event.options for entry in log if isinstance(entry.event, TurnStarted | AgentSwitched)]
        if options:
            with_options.append((gate, options[-1]))
    return with_options
