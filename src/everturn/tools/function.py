"""Function tools: the `@tool` decorator builds a tool from a Python function, its signature (schema) and its docstring.

pydantic is imported here, on the first `@tool`, and nowhere else: it is at the edge, never on the path of a chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import re
import threading
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import Progress, Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ConfigError, ToolError
from everturn.tools.tool_options import TOOL_NAME, ToolOptions, spec_fields
from everturn.tools.validation_errors import ValidationProblem, explain_validation_errors

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_VALIDATED = 16  # arguments that were validated and have not run yet

ToolLike = Tool | Callable[..., Any]
"""A tool, or a function that becomes one as with `@tool`: see `ensure_tool`."""

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Generic[P, R]):
    """A tool made from a function; still callable as that function."""

    def __init__(self, function: Callable[P, R], *, name: str, description: str = "", **choices: Unpack[ToolOptions]):
        if TOOL_NAME.fullmatch(name) is None:
            raise ConfigError(f"{name!r} is not a name for a tool; letters, digits, '_' and '-', at most 64")
        if next(iter(inspect.signature(function).parameters), "") in ("self", "cls"):
            raise ConfigError(f"tool {name!r} is a method; use the bound method: tool(thing.{name})")
        if inspect.isgeneratorfunction(function):
            raise ConfigError(
                f"tool {name!r} is a plain generator; make it an async generator that yields Progress and then the output"
            )
        self.function = function
        summary, described = _read_docstring(
            inspect.getdoc(function) or "", set(inspect.signature(function).parameters)
        )
        self._context, self._names, self._model = _arguments_model(function, name, described)
        chosen = spec_fields(name, choices, self._names.values())
        schema = _json_schema(self._model, name, self._names)
        # Required strings are passed on unchanged: there is no default to fill in and nothing to convert.
        fields = self._model.model_fields.values()
        self._is_plain = all(field.annotation is str and field.is_required() for field in fields)
        self._is_async = inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)
        if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"tool {name!r}: description={description!r}; it must be a text for the model")
        self._spec = ToolSpec(name, description or summary, _plain(schema), origin=_origin(function), **chosen)
        # Only then is a context made for a call. A subclass may use it.
        self.takes_context = self._context is not None or cast(Any, type(self)).run is not cast(Any, FunctionTool).run
        self._validated: dict[int, tuple[JsonObject, BaseModel]] = {}  # id of arguments that are about to run -> both
        self.before, self.after = choices.get("before"), choices.get("after")
        self._to_model = choices.get("to_model")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    @property
    def context_parameter(self) -> str | None:
        """The parameter of the function that gets the `ToolContext`; None: it has none."""
        return self._context

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check arguments against the signature; the result is what the function will receive."""
        checked = self._checked(arguments)
        if len(self._validated) >= MAX_VALIDATED:  # of calls that did not run
            self._validated.clear()
        self._validated[id(arguments)] = (arguments, checked)
        if self._is_plain:
            return None
        try:
            return checked.model_dump(mode="json", by_alias=True, fallback=str)
        except Exception:  # a type that cannot even be named
            return None

    def _checked(self, arguments: JsonObject) -> BaseModel:
        try:
            return self._model.model_validate(arguments)
        except ValueError as error:  # pydantic's ValidationError is one
            raise BadArguments(_explain(self._spec, error)) from None

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object] | AsyncIterator[object]:
        """Call the function: an async one here, a plain one in a thread."""
        # The entry holds its arguments, so the id cannot be that of another object.
        checked = self._validated.pop(id(arguments), (arguments, None))[1] or self._checked(arguments)
        keyword_arguments = {name: getattr(checked, field) for field, name in self._names.items()}
        if self._context is not None:
            keyword_arguments[self._context] = context if self._is_async else _for_thread(context)
        function: Callable[..., Any] = self.function
        if self._is_async:
            return (
                function(**keyword_arguments)
                if self._to_model is None
                else _map_result(function(**keyword_arguments), self._to_model)
            )
        return _in_thread(function, keyword_arguments, self._to_model)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str = "", **choices: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str = "",
    **choices: Unpack[ToolOptions],
) -> Any:
    """Make a tool from a function: its name, docstring and type hints are what the model sees.

    `name` and `description` replace the function's name and the summary of its docstring.

    A `read_only` tool changes nothing; an `idempotent` one changes nothing more when it runs again with the same key.
    Neither is the default: such a call runs at most once, also after a crash. A `resumable` tool may be suspended while
    it waits and run again from its beginning: what must not be repeated is inside `ctx.step`.

    `approval` says who decides about a call where no rule does: `auto` runs it, `ask` asks a person unless a rule or a
    grant allows it, `always` asks a person every time, `deny` refuses it. `review` says when a person reviews the result
    before the model reads it: `never`, `on_error` or `always`. `subjects={"path": "path"}` names the parameters that
    rules can match by their kind: text, path, url or command. `timeout` is in seconds.

    A tool is `repeatable` if calling it again and again is no loop; with `egress` its arguments are sent outside; its
    results are `untrusted`; the fields of its result that are `private` are shown to no model; and `limit` is how many
    characters of a result the model sees. `to_model(value)` turns the return value into what the model reads;
    `before(ctx)` and `after(ctx)` are called around a call, and may change `ctx.arguments` and `ctx.output`.
    """

    def make(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return FunctionTool(function, name=name or function.__name__, description=description, **choices)

    return make if function is None else make(function)


def ensure_tool(item: ToolLike) -> Tool:
    """The tool itself, or a tool made from a function as `@tool` without options makes it.

    Raises:
        ConfigError: the item is neither a tool nor a function.
    """
    if hasattr(item, "spec"):
        return cast(Tool, item)
    if inspect.isroutine(item):
        return tool(item)
    name = getattr(item, "__name__", repr(item))
    raise ConfigError(
        f"{name} is not a tool; pass a function with type hints and a docstring, with or without @tool, or an object with a spec"
    )


def _origin(function: Callable[..., Any]) -> str:
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"function:{named.__module__}.{named.__qualname__}"


def _map_result(
    answer: Awaitable[object] | AsyncIterator[object], to_model: Callable[[Any], object]
) -> Awaitable[object] | AsyncIterator[object]:
    """Apply `to_model` to the result of an async function or generator."""

    async def once(answer: Awaitable[object]) -> object:
        return to_model(await answer)

    async def step_by_step(answer: AsyncIterator[object]) -> AsyncIterator[object]:
        output: object = None
        async with contextlib.aclosing(cast("AsyncGenerator[object, None]", answer)):
            async for item in answer:
                if isinstance(item, Progress):
                    yield item
                else:
                    output = item
        yield to_model(output)

    return step_by_step(answer) if isinstance(answer, AsyncIterator) else once(answer)


def _for_thread(context: ToolContext) -> ToolContext:
    """A context whose `progress` may be called from another thread, and whose awaitable methods raise."""
    loop = asyncio.get_running_loop()

    def progress(text: str) -> None:
        loop.call_soon_threadsafe(context.progress, text)

    def cannot(*arguments: object, **named: object) -> typing.NoReturn:
        raise ToolError("a plain function cannot wait; make the tool an `async def`, and await this")

    waits: dict[str, Any] = dict.fromkeys(
        ("ask", "run_tool", "run_subagent", "read", "step", "sleep", "external"), cannot
    )
    return replace(context, progress=progress, files=None, blobs=None, **waits)


async def _in_thread(
    function: Callable[..., Any], keyword_arguments: dict[str, Any], to_model: Callable[[Any], object] | None
) -> object:
    """Run a plain function in a thread of its own.

    Not in a pool: a function that hangs would hold a worker for ever, and keep the process from exiting.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def finish(result: object, error: BaseException | None) -> None:
        if not done.done():  # the call may have been cancelled meanwhile
            done.set_result((result, error))

    def work() -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = context.run(function, **keyword_arguments)
            if to_model is not None:
                result = context.run(to_model, result)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the event loop is closed, and the caller gone with it
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=work, name=f"tool-{function.__name__}", daemon=True).start()
    # An error travels as a value and is raised here: a future takes no StopIteration, and a GeneratorExit thrown
    # through coroutines means something else to them.
    result, error = await done
    if error is not None:
        raise error
    return result


def _arguments_model(
    function: Callable[..., Any], name: str, described: dict[str, str]
) -> tuple[str | None, dict[str, str], type[BaseModel]]:
    """The parameter that takes the context (which no model ever sees), and a pydantic model of the others.

    The fields have generated names, with the parameters' names as aliases: a parameter may be called `json` or
    `schema`, which are attributes of a pydantic model.
    """
    from pydantic import ConfigDict, Field, create_model

    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigError(f"tool {name!r}: {error}; types of parameters must be defined at module level") from None
    context: str | None = None
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for at, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"tool {name!r}: parameter {parameter.name!r} must be usable as a keyword argument")
        hint = hints.get(parameter.name, str)
        if hint is ToolContext or typing.get_origin(hint) is ToolContext:
            context = parameter.name
            continue
        more: dict[str, Any] = {}
        if parameter.name in described:
            more["description"] = described[parameter.name]
        default = ... if parameter.default is parameter.empty else parameter.default
        names[f"argument_{at}"] = parameter.name
        fields[f"argument_{at}"] = (hint, Field(default, alias=parameter.name, **more))
    try:
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except Exception as error:  # pydantic raises many kinds of error for a type that it does not support
        raise ConfigError(
            f"tool {name!r}: {_explain_unsupported(names, {key: value[0] for key, value in fields.items()}, error)}"
        ) from None
    return context, names, model


def _json_schema(model: type[BaseModel], name: str, names: dict[str, str]) -> dict[str, Any]:
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        return model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        hints = {field: info.annotation for field, info in model.model_fields.items()}
        raise ConfigError(f"tool {name!r}: {_explain_unsupported(names, hints, error)}") from None


def _explain_unsupported(names: dict[str, str], hints: dict[str, Any], error: Exception) -> str:
    """Which parameter has a type that a model cannot fill in; pydantic names only the type."""
    from pydantic import PydanticSchemaGenerationError, TypeAdapter
    from pydantic.errors import PydanticInvalidForJsonSchema

    for field, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema()
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
            shown = hint.__name__ if isinstance(hint, type) and typing.get_origin(hint) is None else str(hint)
            return (
                f"parameter {names[field]!r} has the type {shown}, which no model can fill in; use str, int, float, bool, "
                "list, dict, Literal, an Enum, a dataclass or a pydantic model. What the model must not see is passed "
                "as ctx: ToolContext, in its ctx.deps"
            )
        except Exception:  # of some other kind, which the error of all parameters names
            break
    return f"its parameters cannot be described to a model: {str(error).splitlines()[0]}"


_ENTRY = re.compile(r"^\s*\*{0,2}(\w+)\s*+(?:\([^)]*\))?\s*:\s*(.+)$")


def _read_docstring(text: str, parameters: set[str]) -> tuple[str, dict[str, str]]:
    """The summary, and the description of each parameter in the `Args:` section."""
    before, _, after = text.partition("\nArgs:")
    described: dict[str, str] = {}
    name = ""
    for line in after.splitlines():
        if line and not line[0].isspace():
            break  # the next section
        entry = _ENTRY.match(line)
        if entry is not None and entry[1] in parameters:
            name = entry[1]
            described[name] = entry[2].strip()
        elif name and line.strip():
            described[name] += " " + line.strip()
    summary = re.split(r"\n(?:Returns|Raises|Yields|Example|Examples|Note|Notes):", before)[0]
    return summary.strip(), described


_VALUES = frozenset(("default", "const", "enum", "examples"))  # data, not schema: nothing in them is dropped


def _plain(schema: Any) -> Any:
    """Drop the titles that pydantic adds: they cost tokens in every request and say nothing new."""
    if isinstance(schema, dict):
        items = cast("dict[str, Any]", schema).items()
        return {
            key: value if key in _VALUES else _plain(value)
            for key, value in items
            if not (key == "title" and isinstance(value, str))
        }
    if isinstance(schema, list):
        return [_plain(value) for value in cast("list[Any]", schema)]
    return schema


def _explain(spec: ToolSpec, error: ValueError) -> str:
    """Describe what is wrong with the arguments so that a model can fix them."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return f"the arguments of {spec.name} are wrong: {error}"
    problems = error.errors(include_url=False, include_context=False)
    return explain_validation_errors(
        spec, [ValidationProblem(row["type"], row["loc"], row["msg"], row["input"]) for row in problems]
    )
