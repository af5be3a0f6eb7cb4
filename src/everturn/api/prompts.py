"""Saved prompts and instructions."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from everturn.api.base import MAX_INSTRUCTIONS, Body, View
from everturn.core.tenants.saved_prompts import MAX_PROMPT_ARGUMENTS, MAX_PROMPT_CHARS, PROMPT_NAME_PATTERN


class PromptArgumentView(Body, frozen=True, kw_only=True):
    """An argument of a saved prompt; without a default, the person has to give a value."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    description: Annotated[str, Meta(max_length=500)] = ""
    default: Annotated[str, Meta(max_length=10_000)] | None = None


class PutPrompt(Body, frozen=True, kw_only=True):
    """Write a saved prompt of the caller; with `shared` of the tenant, which takes an owner.

    `{{argument}}` in the text stands for the value of an argument; those that are not described are added.
    """

    name: Annotated[str, Meta(pattern=PROMPT_NAME_PATTERN)]
    text: Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT_CHARS)]
    description: Annotated[str, Meta(max_length=500)] = ""
    arguments: Annotated[list[PromptArgumentView], Meta(max_length=MAX_PROMPT_ARGUMENTS)] = []
    shared: bool = False


class PutInstructions(Body, frozen=True, kw_only=True):
    """Write the instructions of the caller, for all their sessions; with `shared` of the tenant. "" removes them."""

    text: Annotated[str, Meta(max_length=MAX_INSTRUCTIONS)]
    shared: bool = False


class PutSessionInstructions(Body, frozen=True, kw_only=True):
    """Set the instructions of a session, for the messages that are sent from now on. "" removes them."""

    text: Annotated[str, Meta(max_length=MAX_INSTRUCTIONS)]


PromptScope = Literal["config", "shared", "user"]
"""Whose a saved prompt is: of the configuration, of the tenant, or of the caller."""


class PromptView(View, frozen=True, kw_only=True):
    """A saved prompt."""

    name: str
    text: str
    description: str
    arguments: list[PromptArgumentView]
    scope: PromptScope


class PromptList(View, frozen=True, kw_only=True):
    """Saved prompts, by name. Of two with one name there is the caller's, or else the tenant's."""

    prompts: list[PromptView]


class InstructionLayer(View, frozen=True, kw_only=True):
    """A part of the system prompt. `text` is "" for a part of the configuration, unless an operator asks."""

    layer: str  # header, model, app, workspace, shared, custom, user, agent, session or privacy
    text: str
    size: int  # bytes


class InstructionsView(View, frozen=True, kw_only=True):
    """The parts of the system prompt of the next turn that are not empty, in the order in which they are sent."""

    layers: list[InstructionLayer]
