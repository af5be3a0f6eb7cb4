"""Context of a session: what fills the context window of one of its branches. It only reads."""

from __future__ import annotations

from everturn.agents.session_agent import options_of_agent
from everturn.base_app import BaseApp
from everturn.core.context.context_report import ContextReport
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import SessionInfo
from everturn.errors import ConfigError, UnknownMessage, UnknownSession
from everturn.running.prompt_layers import with_prompt
from everturn.turn.request_preview import open_preview, report_context

PREVIEW = "preview"  # the id of a turn that is never written


async def read_context(
    app: BaseApp,
    session: str,
    tenant: str,
    options: TurnOptions,
    *,
    at: str | None = None,
    base: TurnOptions | None = None,
    chosen: tuple[str, ...] = (),
) -> ContextReport:
    """Report the context of the selected branch, or of the one that ends `at` a message.

    It is that of the running turn's next request, if one runs at the end of the branch; otherwise of a turn with these
    options. With a `base`, the agent that has the session takes that turn, as in `Send`.

    Raises:
        UnknownMessage: there is no message `at`.
        ConfigError: this process does not know the agent.
    """
    try:
        info = await app.store.info(session)
    except UnknownSession:  # the session is created by its first message
        if at is not None:
            raise UnknownMessage(f"there is no message {at!r} in this session") from None
        return await _report(app, SessionInfo(session, tenant=tenant), _next_turn(app, options, None), is_new=True)
    leaf = info.leaf if at is None else at
    if at is not None:
        await app.store.path(session, at, 1)
    state = await _running_turn(app, session, leaf)
    if state is None:
        if base is not None and info.agent not in ("", options.agent):
            options = options_of_agent(app, info.agent, base, chosen)
        state = _next_turn(app, options, leaf)
    return await _report(app, info, state)


async def _running_turn(app: BaseApp, session: str, leaf: str | None) -> TurnState | None:
    """The turn that runs at the end of a branch, if this process knows its agent."""
    for turn in await app.store.open_turns(session):
        log = await app.store.events(session, turn=turn)
        state = fold(entry.event for entry in log)
        if log and state.tip == leaf and app.drive_setup(state.options) is not None:
            return state
    return None


def _next_turn(app: BaseApp, options: TurnOptions, parent: str | None) -> TurnState:
    """A turn that would start now, with an empty message: a message that a hook blocked is left out, as then."""
    if (setup := app.drive_setup(options)) is not None:
        options = with_prompt(setup, options)
    message = Message(f"{PREVIEW}.input", parent, "user", (), turn=PREVIEW)
    return fold([TurnStarted(turn=PREVIEW, at=app.clock.now(), parent=parent, input=message, options=options)])


async def _report(app: BaseApp, info: SessionInfo, state: TurnState, is_new: bool = False) -> ContextReport:
    setup = app.drive_setup(state.options)
    if setup is None:
        raise ConfigError(
            f"agent {state.options.agent!r} is not known here; the agents of this app: {list(app.agents)}"
        )
    run = open_preview(setup, info, state)
    if is_new:
        run.history = []
    return await report_context(run)
