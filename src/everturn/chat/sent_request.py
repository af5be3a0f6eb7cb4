"""Sent requests: the request of a step of a turn that has begun, assembled again from the log. It only reads."""

from __future__ import annotations

from msgspec import Struct

from everturn.base_app import BaseApp
from everturn.core.events import Entry, StepStarted
from everturn.core.modality import modality_of
from everturn.core.requests import ModelRequest
from everturn.core.state import fold
from everturn.core.store_ports import SessionInfo
from everturn.errors import ConfigError, UnknownTurn
from everturn.turn.request import assemble_request, build_request
from everturn.turn.request_preview import open_preview

REQUEST_HOOKS = ("on_system_prompt", "on_params", "on_before_request")


class SentRequest(Struct, frozen=True):
    """A request, and the plugins that may have changed it and were not called again."""

    request: ModelRequest
    left_out: tuple[str, ...] = ()


async def rebuild_request(app: BaseApp, info: SessionInfo, log: list[Entry], step: int) -> SentRequest:
    """Assemble the request of a step by the function that turns use, from the log up to the start of that step.

    Raises:
        UnknownTurn: the turn has not begun such a step.
        ConfigError: this process does not know the agent.
    """
    events = [entry.event for entry in log]
    at = next(
        (at for at, event in enumerate(events) if isinstance(event, StepStarted) and event.step == step),
        None,
    )
    if at is None:
        raise UnknownTurn("there is no such step in this turn")
    started = events[at]
    state = fold(events[: at + 1])
    setup = app.drive_setup(state.options)
    if setup is None:
        raise ConfigError(f"agent {state.options.agent!r} is not known here, so its request cannot be shown")
    run = open_preview(setup, info, state)
    called = run.setup.hooks.plugins
    changing = {name for hook in REQUEST_HOOKS for name, _ in setup.hooks[hook]}
    left_out = tuple(sorted(changing - called.keys()))
    closing = isinstance(started, StepStarted) and started.closing
    history = await run.read_history()
    if modality_of(run.model) == "chat":
        return SentRequest(await assemble_request(run, history, step, closing), left_out)
    return SentRequest(await build_request(run, history, await run.user_message(), step, closing), left_out)
