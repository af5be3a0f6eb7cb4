"""Output type of an agent: its JSON Schema, the validation of an answer, and partial objects while it streams."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from everturn.core.canonical_json import JsonObject
from everturn.core.json_schema import validate_schema
from everturn.core.ports import RunContext
from everturn.errors import ConfigError, OutputRetry
from everturn.running.drive_setup import CheckedOutput
from everturn.running.plugin_table import invoke_hook

MAX_PROBLEMS = 10  # that a model is told of at once
FENCE = "```"
ASK_AGAIN = "This is not a valid answer: {problem}\nAnswer again, with the whole corrected answer and nothing else."

OutputValidator = Callable[..., Any]
"""A function of the output, or of the context and the output: it returns the output, or raises `OutputRetry`."""


SCHEMA_KEYWORDS = ("type", "properties", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")


class OutputType:
    """What an agent answers with: anything that pydantic can validate, or what a JSON Schema describes."""

    def __init__(self, kind: Any, retries: int, validators: Sequence[OutputValidator] = ()) -> None:
        from pydantic import TypeAdapter

        self._adapter: TypeAdapter[Any] | None
        self.schema: JsonObject | None
        self.kind, self.retries, self.validators = kind, retries, validators
        self._has_schema = isinstance(kind, Mapping)  # then nothing but the schema checks it
        if self._has_schema:
            if not any(keyword in kind for keyword in SCHEMA_KEYWORDS):
                raise ConfigError(
                    f"output_type={kind!r} is not a JSON Schema: it has none of {', '.join(SCHEMA_KEYWORDS)}"
                )
            self._adapter, self.schema = TypeAdapter(Any), dict(kind)
            return
        try:
            self._adapter = None if kind is str else TypeAdapter(kind)
            self.schema = None if self._adapter is None else self._adapter.json_schema()
        except Exception as error:  # pydantic raises many kinds of error for a type that it does not support
            raise ConfigError(f"output_type={kind!r} cannot be described to a model: {error}") from None

    def parse(self, text: str) -> Any:
        """The output that a text is.

        Raises:
            ValueError: it is none; pydantic's `ValidationError` is one.
        """
        if self._adapter is None:
            return text
        value = self._adapter.validate_json(without_fence(text))
        if self._has_schema and (violations := validate_schema(value, self.schema)):
            raise ValueError("; ".join(map(str, violations[:MAX_PROBLEMS])))
        return value

    def parse_partial(self, text: str) -> Any:
        """The output as far as it has arrived; None while nothing of it can be used."""
        if self._adapter is None:
            return text
        try:
            return self._adapter.validate_json(without_fence(text), experimental_allow_partial="trailing-strings")
        except ValueError:
            return self._partial_model(without_fence(text))

    def _partial_model(self, text: str) -> Any:
        """An object of a model class with those fields that have arrived; the others are not set. None: it has none."""
        from pydantic import BaseModel, TypeAdapter

        if not inspect.isclass(self.kind) or not issubclass(self.kind, BaseModel):
            return None
        try:
            value = TypeAdapter[Any](Any).validate_json(text, experimental_allow_partial="trailing-strings")
        except ValueError:
            return None
        if not isinstance(value, dict):
            return None
        fields: dict[str, Any] = {}
        for name, field in self.kind.model_fields.items():
            with suppress(ValueError, KeyError):
                field_value = cast("dict[str, Any]", value)[field.alias or name]
                adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", field.annotation))
                fields[name] = adapter.validate_python(field_value, experimental_allow_partial="trailing-strings")
        partial: Any = self.kind.model_construct(**fields)
        for name in self.kind.model_fields.keys() - fields.keys():
            partial.__dict__.pop(name, None)  # a default is not what the model said
        return partial if fields else None

    async def check(self, text: str, ctx: RunContext) -> CheckedOutput:
        """Validate an answer, and let the validators see it."""
        try:
            value = self.parse(text)
        except ValueError as error:
            return _reject(text, explain(error))
        kept = text if self._adapter is None else without_fence(text)
        for validator in self.validators:
            try:
                checked = await _call(validator, ctx, value)
            except OutputRetry as error:
                return _reject(text, str(error))
            if checked is not value and checked is not None:
                value, kept = checked, self.dump(checked)
        return CheckedOutput(kept)

    def dump(self, value: Any) -> str:
        """An output as the text that is kept in the log."""
        return value if self._adapter is None else self._adapter.dump_json(value, by_alias=True).decode()


def _reject(text: str, reason: str) -> CheckedOutput:
    return CheckedOutput(text, ASK_AGAIN.format(problem=reason), reason)


async def _call(validator: OutputValidator, ctx: RunContext, value: Any) -> Any:
    takes_context = len(inspect.signature(validator).parameters) > 1
    return await invoke_hook(validator, *([ctx, value] if takes_context else [value]))


def without_fence(text: str) -> str:
    """The text without a Markdown fence around it: models without structured output like to write one."""
    text = text.strip()
    if not text.startswith(FENCE):
        return text
    first, _, rest = text.partition("\n")
    if first.removeprefix(FENCE).strip().lower() not in ("", "json"):
        return text
    return rest.rstrip().removesuffix(FENCE).strip()


def explain(error: ValueError) -> str:
    """What is wrong with an answer, for the model."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, row['loc'])) or 'the answer'}: {row['msg']}" for row in problems[:MAX_PROBLEMS]]
    more = len(problems) - MAX_PROBLEMS
    return "; ".join([*lines, *([f"and {more} more"] if more > 0 else [])])
