"""Request preview: the next request on a branch, and what fills its context window, without sending it.

The request is assembled by the function that turns use, from a turn that is never written: it is closed, so nothing can
be committed. Of the plugins only those are called whose part of a request has no other effect (`has_pure_requests`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from everturn.core.context.compaction import count_last_turns, is_compaction
from everturn.core.context.context_report import ContextKind, ContextReport, build_report
from everturn.core.context.context_size import measure
from everturn.core.modality import modality_of
from everturn.core.phases import Phase
from everturn.core.requests import ModelRequest
from everturn.core.state import TurnState
from everturn.core.store_ports import SessionClaim, SessionInfo
from everturn.running.active_turn import ActiveTurn
from everturn.running.drive_setup import DriveSetup
from everturn.running.ledger import Ledger
from everturn.running.plugin_table import PluginTable
from everturn.turn.compaction import MAX_STRIKES, UNKNOWN, Branch, load_limits
from everturn.turn.request import assemble_request
from everturn.turn.window_usage import window_usage


def open_preview(setup: DriveSetup, info: SessionInfo, state: TurnState) -> ActiveTurn:
    """A turn that can be read and not continued: everything that would write fails."""
    hooks = setup.hooks
    if (state.options.clients or state.options.tools) and setup.client_hooks is not None:
        hooks = setup.client_hooks
    client_hooks = _pure_hooks(setup.client_hooks) if setup.client_hooks is not None else None
    setup = replace(setup, hooks=_pure_hooks(hooks), client_hooks=client_hooks)
    ledger = Ledger(info.id, SessionClaim(0, 0, info), setup.store, setup.bus, _announce_nothing)
    run = ActiveTurn(setup, ledger, state)
    run.is_closed = True
    return run


def _pure_hooks(hooks: PluginTable) -> PluginTable:
    return PluginTable([plugin for plugin in hooks.plugins.values() if getattr(plugin, "has_pure_requests", False)])


async def preview_request(run: ActiveTurn) -> ModelRequest:
    """The next request of a turn that was opened for a preview, without its files."""
    step = 1 if run.state.step is None else run.state.step.number + 1
    return await assemble_request(run, await run.read_history(), step, closing=False)


async def report_context(run: ActiveTurn) -> ContextReport:
    """The context of the branch of a turn that was opened for a preview."""
    state, policy = run.state, run.state.options.context
    if modality_of(run.model) != "chat":  # it reads one message, and no conversation
        return build_report(model=run.model.name, limits=UNKNOWN, used=0, estimated=True, policy=policy, estimates={})
    estimates = window_usage(await preview_request(run))
    branch = Branch(run, await run.read_history())
    size = measure(branch.path)
    # What was counted is the beginning of the next request only if earlier turns are rendered as they were.
    compactions = sum(map(is_compaction, branch.path))
    if size.is_known and state.options.tool_history == "full" and not count_last_turns(policy):
        used, is_estimated = branch.used, size.model != run.model.name
        if not size.model and compactions == 1:
            used += int(await _added_by_compaction(run, estimates) * branch.weight)
    else:
        used, is_estimated = int(sum(estimates.values()) * branch.weight), True
    return build_report(
        model=run.model.name,
        limits=await load_limits(run),
        used=used,
        estimated=is_estimated,
        policy=policy,
        estimates=estimates,
        compactions=compactions,
        strikes=state.strikes,
        paused=state.strikes >= MAX_STRIKES or state.compaction_problem is not None,
        summarizing=state.compaction is not None,
    )


async def _added_by_compaction(run: ActiveTurn, estimates: Mapping[ContextKind, int]) -> int:
    """The tokens that requests have from the first compaction on, and that its size does not include: `read_result`."""
    state = TurnState(run.turn, options=run.state.options, started=run.state.started)
    empty = open_preview(run.setup, SessionInfo(run.session, tenant=run.ledger.tenant), state)
    empty.history = []
    without = window_usage(await preview_request(empty))
    return sum(max(estimates.get(kind, 0) - without.get(kind, 0), 0) for kind in ("instructions", "tools"))


def _announce_nothing(session: str, state: TurnState, phase: Phase) -> None:
    """No phase is entered: nothing is written."""
