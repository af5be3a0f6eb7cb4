"""Preparation of an answer: checks the input, reports late results, and adds the placeholder of the answer.

The history is read before the placeholder exists, or the model would read its own empty answer.
"""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.events import AgentSwitched, AnswerStarted, DeferredMessage
from everturn.core.messages import Message
from everturn.core.modality import explain_missing_input, modality_of
from everturn.core.parts import LATE_NOTICE_PREFIX, NoticePart, Output, ToolPart
from everturn.errors import TurnError
from everturn.running.active_turn import ActiveTurn
from everturn.running.drive_setup import AgentPort
from everturn.running.hook_contexts import run_append_hooks


async def report_late_results(run: ActiveTurn) -> bool:
    """Report late results to the model, once each; True if there were any.

    They are sent in a separate notice. Messages that were sent before are never rewritten.
    """
    if run.state.options.late != "inject" or run.late == {}:
        return False
    if run.late is None:
        run.late = {}  # first: what arrives while the store is asked is added here
        has_late = run.ledger.may_have_indexed("late") and await run.setup.store.indexed_events(
            run.session, "late", limit=1
        )
        if not has_late and not run.late:
            return False
    history = await run.read_history()
    calls: dict[str, ToolPart] = {}
    reported: set[str] = set()
    if run.older is not None:
        calls = await run.older.find_all({*run.older_late, *run.late}) if run.late else dict(run.older_late)
        reported = {LATE_NOTICE_PREFIX + call for call in await run.older.reported()} if calls else reported
    for message in (*history, *run.state.messages.values()):
        for part in message.parts:
            if type(part) is ToolPart:
                calls[part.call] = part
            elif type(part) is NoticePart:
                reported.add(part.kind)
    late_results = {call: part.late for call, part in calls.items() if part.late is not None}
    late_results.update({call: late.output for call, late in (run.late or {}).items() if call in calls})
    run.late = {}
    notices = tuple(
        _notice(calls[call], late) for call, late in late_results.items() if LATE_NOTICE_PREFIX + call not in reported
    )
    if notices:
        number = sum(message.role == "notice" for message in run.state.messages.values())
        notice = Message(f"{run.turn}.late.{number}", None, "notice", notices, by="everturn", turn=run.turn)
        await run.add_message(DeferredMessage(notice), lambda message: run_append_hooks(run, message))
    return bool(notices)


def _notice(part: ToolPart, late: Output) -> NoticePart:
    # As JSON, so that no result can pretend to be the end of its own notice.
    result = {"tool_call_id": part.call, "tool": part.name, "result": late.text}
    return NoticePart(LATE_NOTICE_PREFIX + part.call, encode_canonical({"late_tool_result": result}), late.untrusted)


async def check_input(run: ActiveTurn) -> None:
    """Check that a model that is not for chat has its input, before the answer is started.

    Raises:
        TurnError: the input is missing; kind `input`. It existed at admission, so it was removed since.
    """
    modality = modality_of(run.model)
    if modality != "chat":
        message = await run.user_message()
        if problem := explain_missing_input(
            modality, await run.read_whole_history(), message.parts if message is not None else ()
        ):
            raise TurnError(problem, kind="input")


async def render_instructions(run: ActiveTurn) -> None:
    """Call the functions among the agent's instructions, and write what they return: the same for every request."""
    agent = run.setup.agent
    if agent is None or not agent.has_instruction_functions or run.state.has_rendered_instructions:
        return
    options = run.state.options
    text = await _render(run, agent, each_step=False)
    system = "\n\n".join(part for part in (options.system, text) if part)
    run.stage([AgentSwitched(turn=run.turn, at=run.now(), agent=run.agent, options=replace(options, system=system))])
    run.system = None


async def render_step_instructions(run: ActiveTurn) -> str:
    """The instructions of the agent for the next step alone."""
    agent = run.setup.agent
    return await _render(run, agent, each_step=True) if agent is not None and agent.has_step_instructions else ""


async def _render(run: ActiveTurn, agent: AgentPort, each_step: bool) -> str:
    if run.state.step is None:
        await run.commit([])  # functions of the application act on a turn that is written
    try:
        return replace_surrogates(await agent.render_instructions(await run.run_context(), each_step))
    except Exception as error:
        text = f"the instructions of agent {run.agent!r} could not be rendered: {error!r}"
        raise TurnError(replace_surrogates(text), kind="instructions") from error


async def start_answer(run: ActiveTurn) -> None:
    """Add the placeholder of the answer, with the model's name; of a refused message, with the runtime's."""
    if run.state.refusal is not None:
        refused = Message(
            run.setup.ids.new("msg"), run.state.tip, "assistant", by="everturn", turn=run.turn, refused=True
        )
        run.stage([AnswerStarted(turn=run.turn, at=run.now(), message=refused)])
        return
    await check_input(run)
    await render_instructions(run)
    await run.read_history()
    if modality_of(run.model) == "chat":
        await report_late_results(run)
    placeholder = Message(run.setup.ids.new("msg"), None, "assistant", by=run.model.name, turn=run.turn)
    answer = await run_append_hooks(run, placeholder)

    run.stage([AnswerStarted(turn=run.turn, at=run.now(), message=replace(answer, parent=run.state.tip))])
