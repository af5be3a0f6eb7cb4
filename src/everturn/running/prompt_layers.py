"""Prompt layers: resolves the layers of the system prompt when a turn starts, so that the log has them.

A process that continues the turn reads them from the log, whatever its own configuration says by then.
"""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.options import NO_PROMPT, Prompt, TurnOptions
from everturn.running.drive_setup import DriveSetup

CALLER_LAYERS = ("shared", "user", "session")
"""The layers that a caller gives with a message; the others are those of the process that starts the turn."""


def resolve_prompt(setup: DriveSetup, options: TurnOptions) -> Prompt | None:
    """The layers of a turn that starts with these options; None if all of them are empty.

    A prompt that has other layers than a caller's was resolved before: in a replay it is that of the recording.
    """
    settings, caller_prompt = setup.settings, options.prompt
    prompt = settings.prompt
    if caller_prompt is not None:
        layers = {name: getattr(caller_prompt, name) for name in CALLER_LAYERS}
        if caller_prompt != Prompt(**layers):
            return caller_prompt
        prompt = replace(prompt, **layers)
    if settings.model_instructions and not has_instructions(setup, options):
        prompt = replace(prompt, model=settings.model_instructions.get(options.model, ""))
    return None if prompt == NO_PROMPT else prompt


def has_instructions(setup: DriveSetup, options: TurnOptions) -> bool:
    """Whether the agent of a turn has instructions of its own."""
    agent = setup.agent
    functions = agent is not None and (agent.has_instruction_functions or agent.has_step_instructions)
    return bool(options.system) or bool(setup.settings.prompt.agent) or functions


def switch_prompt(setup: DriveSetup, options: TurnOptions) -> TurnOptions:
    """The options of a turn that another agent takes over: all layers stay, but for that of its model."""
    models = setup.settings.model_instructions
    before = options.prompt or NO_PROMPT
    if not models and not before.model:
        return options
    model = "" if has_instructions(setup.for_turn(options), options) else models.get(options.model, "")
    prompt = replace(before, model=model)
    return replace(options, prompt=None if prompt == NO_PROMPT else prompt)


def with_prompt(setup: DriveSetup, options: TurnOptions) -> TurnOptions:
    """The options with the layers that a turn starts with."""
    prompt = resolve_prompt(setup, options)
    return options if prompt is options.prompt else replace(options, prompt=prompt)
