"""Commands for saved prompts: `/NAME` and `/prompt NAME` put the expanded text into the input, where it can be read."""

from __future__ import annotations

from typing import Protocol

from everturn import api
from everturn.core.tenants.saved_prompts import PromptArgument, SavedPrompt, expand_prompt, parse_arguments
from everturn.errors import ConfigError
from everturn.terminal.tui.host import Language, Severity
from everturn.terminal.tui.texts.prompts import get_prompt_texts


class PromptHost(Protocol):
    """The app, as these commands see it."""

    language: Language
    prompts: list[api.PromptView]

    def write_input(self, text: str) -> None:
        """Replace the text in the input."""
        ...

    def show_message(self, text: str, severity: Severity = "information") -> None:
        """Show a notification to the person."""
        ...


def describe_prompts(host: PromptHost) -> dict[str, str]:
    """The commands of the saved prompts, each with its arguments and its description."""
    return {f"/{prompt.name}": _about(prompt) for prompt in host.prompts}


def use_prompt(host: PromptHost, name: str, words: str) -> bool:
    """Put the expanded text of a prompt into the input; False if there is no prompt of this name.

    If an argument is missing, the command is put there, so that the person can add it.
    """
    view = next((prompt for prompt in host.prompts if prompt.name == name), None)
    if view is None:
        return False
    prompt = SavedPrompt(
        view.name,
        view.text,
        view.description,
        tuple(PromptArgument(argument.name, argument.description, argument.default) for argument in view.arguments),
    )
    try:
        text = expand_prompt(prompt, parse_arguments(prompt, words))
    except ConfigError as error:
        host.write_input(f"/prompt {name} {words}".rstrip() + " ")
        host.show_message(str(error), "warning")
        return True
    host.write_input(text)
    host.show_message(get_prompt_texts(host.language).expanded)
    return True


def refuse_unknown_prompt(host: PromptHost, name: str) -> None:
    """Say that there is no such prompt, and which there are."""
    known = ", ".join(prompt.name for prompt in host.prompts) or "–"
    host.show_message(get_prompt_texts(host.language).no_prompt.format(name=name, known=known), "warning")


def _about(prompt: api.PromptView) -> str:
    arguments = " ".join(argument.name.upper() for argument in prompt.arguments)
    return "  ".join(filter(None, (arguments, prompt.description)))
