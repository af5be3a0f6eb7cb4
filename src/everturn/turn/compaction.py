"""Compaction: keeps the requests of a turn within the context window of their model.

Before each step the size of its request is compared with the limit. When it nears the limit, old results are cleared;
when that is not enough, a model writes a summary; when that fails, the oldest messages are left out. Each of these is a
message of the tree, written once and before it is used. A request that a provider refuses as too long is compacted once
and sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from everturn.core.canonical_json import replace_surrogates
from everturn.core.context.compaction import compact_path, last_summary
from everturn.core.context.compaction_plan import (
    BranchCut,
    Clearing,
    choose_cleared,
    choose_cut,
    cut_at,
    is_clearing_worth_it,
    list_artifacts,
    quote_person,
    taint_of_parts,
)
from everturn.core.context.context_size import (
    CLEAR_AT,
    CLEAR_TO,
    MAX_WEIGHT,
    SUMMARIZE_AT,
    ContextLimits,
    learn_sizes,
    learn_weight,
    learned_limit,
    measure,
)
from everturn.core.context.token_estimate import estimate_summary
from everturn.core.decide import RequestModel, StartAnswer, TurnAction
from everturn.core.events import CompactionFailed, CompactionFinished, CompactionStarted, Event, MessageAdded, Problem
from everturn.core.messages import Message
from everturn.core.modality import modality_of
from everturn.core.parts import ClearedPart, CompactionPart, CompactionReason, SummaryPart
from everturn.core.projections.call_index import dump_page, make_page
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.running import budget
from everturn.running.active_turn import ActiveTurn
from everturn.running.compact_context import CompactHookContext
from everturn.running.older_calls import read_page
from everturn.turn.summarizer import INSTRUCTIONS, Summary, params_max_tokens, summarize
from everturn.turn.window_usage import describe_window, estimate_request

log = logging.getLogger(__name__)

MAX_STRIKES = 2  # useless compactions of a turn after which no further summary is asked for by itself
UNKNOWN = ContextLimits(0, 0)  # the model does not say how much it reads
MIN_COMMAND = 100  # tokens; a person's command to compact less than that does nothing
LEARNED_SHARE = 0.9  # of a request that was too long: the limit where a model names none


class Branch:
    """The branch of a turn, and the size of its next request."""

    def __init__(self, run: ActiveTurn, history: Sequence[Message]) -> None:
        self.path = [*history, *run.state.messages.values()]
        self.view = compact_path(self.path)
        self.weight = learn_weight(self.path, run.model.name)
        self.used = measure(self.path).used(self.weight)
        found = last_summary(self.path)
        self.summary = found[1] if found is not None else None
        self.start = 0 if found is None else _start_of(self.path, found[1].kept, found[1].task)
        self.task = run.state.input or run.state.parent or ""

    def replaced_messages(self, cut: BranchCut) -> list[Message]:
        """The messages that a turn reads now, and does not after this cut."""
        return self.path[self.start : max(self.start, _start_of(self.path, cut.kept, cut.task))]

    @property
    def cleared(self) -> set[str]:
        """The calls whose results were cleared."""
        return {
            call for message in self.path for part in message.parts if type(part) is ClearedPart for call in part.calls
        }


def _start_of(path: Sequence[Message], kept: str, task: str) -> int:
    """The number of the first message of a branch that is read after a summary; 0 if the branch has none of these."""
    names = {name for name in (kept, task) if name}
    found = {message.id: at for at, message in enumerate(path) if message.id in names}
    return min(found.values()) if len(found) == len(names) and found else 0


async def fit_context(run: ActiveTurn, action: TurnAction) -> bool:
    """Compact the conversation before a step whose request would be too long; True if something was written."""
    state = run.state
    if not _is_before_step(run, action) or state.options.context != "auto" or state.limit or state.refusal:
        return False
    limits = run.context_limits or await load_limits(run)
    if not limits.limit:
        return False
    size = measure(list(state.messages.values()))
    if not size.is_known:
        size = measure([*await run.read_history(), *state.messages.values()])
    # A compaction before a step that continues a text would split it into two messages: only if it must be.
    is_continued = state.step is not None and state.step.continues
    if size.used(MAX_WEIGHT) < (1.0 if is_continued else CLEAR_AT) * limits.limit:
        return False
    return await _fit(run, limits)


def _is_before_step(run: ActiveTurn, action: TurnAction) -> bool:
    """Whether a message can be added before the next request: not behind an answer that is still empty."""
    state = run.state
    if type(action) is StartAnswer:
        return modality_of(run.model) == "chat"
    if type(action) is not RequestModel or action.again or state.answer is None:
        return False
    return bool(state.messages[state.answer].parts)


async def _fit(run: ActiveTurn, limits: ContextLimits) -> bool:
    branch = Branch(run, await run.read_history())
    used, limit, state = branch.used, limits.limit, run.state
    run.is_over_window = False
    if used < CLEAR_AT * limit:
        return False
    is_near = used >= SUMMARIZE_AT * limit
    clearing = choose_cleared(branch.view, limits, branch.cleared)
    if clearing is not None and _is_worth_clearing(branch, clearing, limits, is_near):
        await _clear(run, branch, limits, clearing)
        return True
    if not is_near:
        return False
    cut = choose_cut(branch.path, branch.view, limits, branch.task)
    if (
        cut is not None
        and _is_worth_summary(branch, cut, limits)
        and state.strikes < MAX_STRIKES
        and state.compaction_problem is None
        and await budget.find_reached_limit(run) is None
    ):
        await run.commit([_started(run, "limit", cut, branch, limits)])
        return True
    if used > limit and await _truncate(run, branch, limits, "limit"):
        return True
    run.is_over_window = used > limits.window
    return False


async def load_limits(run: ActiveTurn) -> ContextLimits:
    """The limits of the turn's model: from its context window, or what an earlier overflow on the branch has shown."""
    facts = getattr(run.model, "facts", None)
    window = 0 if facts is None else (await facts()).window or 0
    if window:
        limits = ContextLimits.of_window(window, params_max_tokens(run))
        run.context_limits = limits
        return limits
    history = await run.read_history()
    if run.has_compaction or run.state.compactions:
        limit = learned_limit([*history, *run.state.messages.values()], run.model.name)
        return ContextLimits(limit, limit) if limit else UNKNOWN
    if run.state.compaction is None:  # its summary may name a limit
        run.context_limits = UNKNOWN
    return UNKNOWN


def _is_worth_clearing(branch: Branch, clearing: Clearing, limits: ContextLimits, is_near: bool) -> bool:
    """Whether cleared results free enough for some time, and more than their absence costs in the provider's cache."""
    is_enough = branch.used - clearing.freed * branch.weight <= CLEAR_TO * limits.limit
    return is_enough and (is_near or is_clearing_worth_it(clearing))


def _is_worth_summary(branch: Branch, cut: BranchCut, limits: ContextLimits) -> bool:
    """Whether a summary would free more than it costs, and what stays would fit into the window.

    Below the limit it waits until there is more to replace than the last summary was. Above it the answer has no room
    left, and the new summary takes the place of the last one as well.
    """
    last = estimate_summary(branch.summary) if branch.summary is not None else 0
    is_due = cut.tokens > last or branch.used > limits.limit
    is_enough = is_due and cut.tokens * branch.weight >= limits.min_cleared
    return is_enough and branch.used - cut.tokens * branch.weight < limits.window


# The rungs ---------------------------------------------------------------------------------------------------------


def _add(run: ActiveTurn, name: str, part: CompactionPart, number: int | None = None) -> MessageAdded:
    if number is None:
        number = sum(message.role == "notice" for message in run.state.messages.values())
    name = f"{run.turn}.{name}.{number}"
    message = Message(name, run.state.tip, "notice", (part,), by="everturn", turn=run.turn)
    return MessageAdded(turn=run.turn, at=run.now(), message=message)


def _open_step(run: ActiveTurn) -> int:
    step = run.state.step
    return step.number if step is not None and step.is_open else 0


async def _clear(run: ActiveTurn, branch: Branch, limits: ContextLimits, clearing: Clearing) -> None:
    after = max(branch.used - int(clearing.freed * branch.weight), 0)
    part = ClearedPart(clearing.calls, branch.used, after, limits.limit, _open_step(run))
    await run.commit(lambda: [_add(run, "cleared", part)])


async def _truncate(run: ActiveTurn, branch: Branch, limits: ContextLimits, why: CompactionReason) -> bool:
    """Clear all results but the newest and, if there are none, leave the oldest messages out; False: nothing is left."""
    clearing = choose_cleared(branch.view, limits, branch.cleared, is_forced=True)
    cut = choose_cut(branch.path, branch.view, limits, branch.task)
    removable = (clearing.freed if clearing is not None else 0) + (cut.tokens if cut is not None else 0)
    if branch.used - removable * branch.weight >= limits.window:  # what stays is too long by itself
        return False
    if clearing is not None:
        await _clear(run, branch, limits, clearing)
        return True
    if cut is None or not _is_worth_summary(branch, cut, limits):
        return False
    started = _started(run, why, cut, branch, limits)
    part = await _summary_part(run, branch, cut, limits, started, Summary(""))
    await run.commit(lambda: [_add(run, "truncated", part)])
    return True


def _started(
    run: ActiveTurn, why: CompactionReason, cut: BranchCut, branch: Branch, limits: ContextLimits
) -> CompactionStarted:
    return CompactionStarted(
        turn=run.turn,
        at=run.now(),
        number=run.state.compaction_number + 1,
        why=why,
        kept=cut.kept,
        step=cut.step,
        task=cut.task,
        used=branch.used,
        limit=limits.limit,
    )


async def _summary_part(
    run: ActiveTurn, branch: Branch, cut: BranchCut, limits: ContextLimits, started: CompactionStarted, summary: Summary
) -> SummaryPart:
    replaced = branch.replaced_messages(cut)
    untrusted, private = taint_of_parts(
        (*(part for message in replaced for part in message.parts), *(part for s in cut.head for part in s.parts))
    )
    if branch.summary is not None:
        untrusted, private = untrusted or branch.summary.untrusted, private or branch.summary.private
    part = SummaryPart(
        summary.text,
        cut.kept,
        cut.step,
        cut.task,
        quote_person(cut.head, branch.summary, int(limits.quotes / branch.weight)),
        list_artifacts(cut.head, branch.summary, int(limits.artifacts / branch.weight)),
        len({segment.message.id for segment in cut.head}),
        before=started.used,
        limit=started.limit,
        why=started.why,
        during=_open_step(run),
        model=run.model.name,
        by=summary.model,
        focus=run.state.options.compact or "",
        untrusted=untrusted,
        private=private,
        learned=learn_sizes(branch.path, run.model.name, limits.limit if started.why == "overflow" else 0),
        calls=await _index_calls(run, branch, replaced),
    )
    earlier = estimate_summary(branch.summary) if branch.summary is not None else 0
    change = estimate_summary(part) - cut.tokens - earlier
    return replace(part, after=max(started.used + int(change * branch.weight), 0))


async def _index_calls(run: ActiveTurn, branch: Branch, replaced: Sequence[Message]) -> str:
    """List the calls of the messages that no later turn reads; returns the blob, or "" if the list has a gap."""
    store, earlier, reported = run.setup.store, "", tuple[str, ...]()
    if branch.summary is not None and (branch.start or run.older is not None):
        earlier = branch.summary.calls
        page = await read_page(store, earlier) if earlier else None
        if page is None:
            return ""
        reported = page.reported
    try:
        return await store.put_blob(dump_page(make_page(replaced, earlier, reported)))
    except (ConfigError, OSError) as error:  # a store without blobs
        log.info("turn %s: the replaced calls are not listed: %s", run.turn, error)
        return ""


async def run_compaction(run: ActiveTurn, started: CompactionStarted) -> bool:
    """Ask a model for the summary that the log says was started, and write it; False if there is none."""
    written = run.state.messages.get(f"{run.turn}.summary.{started.number}")
    if written is not None:  # a store wrote only a part of the append
        model = next((part.by for part in written.parts if isinstance(part, SummaryPart)), "")
        await run.commit([CompactionFinished(turn=run.turn, at=run.now(), number=started.number, model=model)])
        return True
    branch = Branch(run, await run.read_history())
    cut = cut_at(branch.path, branch.view, started.kept, started.step, started.task)
    known = run.context_limits or await load_limits(run)
    limits = ContextLimits(known.window or started.limit, started.limit)
    usage = None
    try:
        summary = await _summary(run, branch, cut, limits, started)
        usage, problem = summary.usage, Problem("summary", summary.problem)
    except ModelError as error:
        summary, problem = Summary("", problem=str(error)), Problem(error.kind, replace_surrogates(str(error)))
    if summary.problem:
        log.warning("turn %s: no summary: %s", run.turn, summary.problem)
        failed = CompactionFailed(
            turn=run.turn, at=run.now(), number=started.number, problem=problem, usage=usage or summary.usage
        )
        await run.commit([failed])
        return False
    part = await _summary_part(run, branch, cut, limits, started, summary)

    def events() -> list[Event]:
        finished = CompactionFinished(
            turn=run.turn, at=run.now(), number=started.number, usage=summary.usage, model=summary.model
        )
        return [_add(run, "summary", part, started.number), finished]

    await run.commit(events)
    return True


async def _summary(
    run: ActiveTurn, branch: Branch, cut: BranchCut, limits: ContextLimits, started: CompactionStarted
) -> Summary:
    """The summary: of a plugin, or of a model."""
    instructions, focus, added = INSTRUCTIONS, run.state.options.compact or "", list[str]()
    replaced = list({segment.message.id: segment.message for segment in cut.head}.values())
    for plugin, method in run.setup.hooks["on_compact"]:
        ctx = CompactHookContext(run, plugin, started.why, replaced, instructions, focus)
        try:
            await run.call_hook(plugin, "on_compact", method, ctx)
        finally:
            ctx.close()
        if ctx.refusal is not None:
            return Summary("", problem=f"{plugin} refused the compaction: {ctx.refusal}")
        if ctx.text is not None:
            return Summary(ctx.text, model=plugin)
        instructions, focus = ctx.instructions, ctx.focus
        added += ctx.added
    window = run.context_limits.limit if run.context_limits is not None and run.context_limits.limit else limits.limit
    return await summarize(run, cut.head, branch.summary, limits, window, branch.weight, instructions, focus, added)


# Overflow and command ----------------------------------------------------------------------------------------------


async def recover_overflow(run: ActiveTurn, body: ModelRequest, error: ModelError) -> bool:
    """Compact the conversation because a provider refused a request as too long; False if nothing can be compacted.

    Once for a step: the request is then sent again, and a second refusal is an error.
    """
    step = run.state.step
    if run.state.options.context != "auto" or step is None or step.has_recovered or modality_of(run.model) != "chat":
        return False
    branch = Branch(run, await run.read_history())
    branch.used = max(branch.used, int(estimate_request(body) * branch.weight))
    known = run.context_limits or await load_limits(run)
    limit = int(branch.used * LEARNED_SHARE)
    limits = ContextLimits(known.window, min(known.limit, limit)) if known.limit else ContextLimits(limit, limit)
    cut = choose_cut(branch.path, branch.view, limits, branch.task)
    can_ask = run.state.strikes < MAX_STRIKES and run.state.compaction_problem is None
    if (
        cut is not None
        and can_ask
        and _is_worth_summary(branch, cut, limits)
        and await budget.find_reached_limit(run) is None
    ):
        started = _started(run, "overflow", cut, branch, limits)
        await run.commit([started])
        if not known.limit:
            run.context_limits = None  # the summary names a limit
        if await run_compaction(run, started):
            return True
    return await _truncate(run, branch, limits, "overflow")


def overflow_error(body: ModelRequest, error: ModelError | None, window: int) -> ModelError:
    """The error of a request that is too long and cannot be made shorter: what fills the window, and what can be done."""
    text = describe_window(body, window)
    return ModelError(f"{error} {text}" if error is not None else text, kind="context")


async def compact_on_command(run: ActiveTurn) -> bool:
    """Start the summary that a turn is for; False if there is nothing to summarise."""
    branch = Branch(run, await run.read_history())
    known = run.context_limits or await load_limits(run)
    limit = max(min(known.limit, branch.used) if known.limit else branch.used, 1)
    limits = ContextLimits(known.window or limit, limit)
    cut = choose_cut(branch.path, branch.view, limits, "")
    if cut is None or cut.tokens < MIN_COMMAND:
        return False
    await run.commit([_started(run, "command", cut, branch, limits)])
    return True
