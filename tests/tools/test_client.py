"""What a client tool is told to be: checked when it is made, so that no client is asked to do nonsense."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.json_schema import validate_schema
from everturn.core.options import ClientTool
from everturn.errors import BadArguments, ConfigError
from everturn.tools.browser import (
    BROWSER_JS_EVAL,
    BROWSER_LIST_DIRECTORY,
    BROWSER_READ_FILE,
    BROWSER_TOOLS,
    BROWSER_WRITE_FILE,
)
from everturn.tools.client import ClientRunTool, client_tool

OBJECT: dict[str, object] = {"type": "object", "properties": {}}

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a name with a space": ({"name": "ring it"}, "not a name"),
    "no name": ({"name": ""}, "not a name"),
    "a schema of a list": ({"schema": {"type": "array"}}, "that of an object"),
    "no schema": ({"schema": {}}, "that of an object"),
    "no lease": ({"lease": 0.0}, "lease must be"),
    "a lease of days": ({"lease": 90_000.0}, "lease must be"),
    "a negative timeout": ({"timeout": -1.0}, "timeout a number"),
    "a schema that is no JSON": ({"schema": {"type": "object", "x": object()}}, "plain JSON"),
    "an answer that is no JSON": ({"output_schema": {"x": object()}}, "plain JSON"),
}


@pytest.mark.parametrize(("wrong", "text"), WRONG.values(), ids=WRONG.keys())
def test_a_tool_that_makes_no_sense_is_refused_and_says_why(wrong: dict[str, Any], text: str) -> None:
    fields: dict[str, Any] = {"name": "ring", "description": "Ring.", "schema": OBJECT, **wrong}
    with pytest.raises(ConfigError, match=text):
        ClientRunTool(ClientTool(**fields))


def test_what_a_client_does_once_is_asked_for_and_not_run_by_us() -> None:
    bell = client_tool("ring", "Ring.", OBJECT)
    assert (bell.spec.idempotent, bell.spec.origin, bell.spec.approval) == (True, "client", "auto")


def test_arguments_are_held_against_the_schema() -> None:
    tool = ClientRunTool(BROWSER_READ_FILE)
    tool.validate({"path": "notes.md"})
    for wrong in ({}, {"path": 1}, {"path": ""}, {"path": "a", "other": 1}, {"path": "a" * 1025}):
        with pytest.raises(BadArguments, match="browser_read_file"):
            tool.validate(wrong)


# Examples of what a model asks and a page answers, and of what neither may.
EXAMPLES: dict[str, tuple[ClientTool, list[Any], list[Any], list[Any], list[Any]]] = {
    "eval": (
        BROWSER_JS_EVAL,
        [{"code": "return 1"}, {"code": "", "timeout_ms": 1}, {"code": "x", "timeout_ms": 30_000}],
        [
            {},
            {"code": 1},
            {"code": "x", "timeout_ms": 0},
            {"code": "x", "timeout_ms": 30_001},
            {"code": "x", "url": "y"},
        ],
        [{"value": None}, {"value": {"a": [1]}, "console": ["hello"]}],
        [{}, {"console": []}, {"value": 1, "console": [1]}, {"value": 1, "other": 2}, [], "1"],
    ),
    "list": (
        BROWSER_LIST_DIRECTORY,
        [{}, {"path": ""}, {"path": "notes"}],
        [{"path": 1}, {"path": "a", "all": True}],
        [[], [{"name": "a", "kind": "file", "size": 0}, {"name": "b", "kind": "directory"}]],
        [{}, [{"name": "a"}], [{"name": "a", "kind": "link"}], [{"name": "a", "kind": "file", "size": -1}], ["a"]],
    ),
    "read": (
        BROWSER_READ_FILE,
        [{"path": "a"}],
        [{}, {"path": ""}],
        ["", "text", "ü"],
        [None, 1, ["text"], {"text": "text"}],
    ),
    "write": (
        BROWSER_WRITE_FILE,
        [{"path": "a", "content": ""}],
        [{"path": "a"}, {"content": "x"}, {"path": "", "content": "x"}],
        [{"written": 0}, {"written": 3}],
        [{}, {"written": -1}, {"written": "3"}, 3],
    ),
}


@pytest.mark.parametrize("declared", BROWSER_TOOLS, ids=lambda declared: declared.name)
def test_the_tools_of_a_page_are_valid_and_have_an_example_here(declared: ClientTool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for schema in (declared.schema, declared.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
    assert ClientRunTool(declared).spec.name == declared.name
    assert declared in [example[0] for example in EXAMPLES.values()]


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_the_schemas_of_a_page_take_what_fits_and_refuse_the_rest(example: Any) -> None:
    declared, accepted, not_asked, answered, not_answered = example
    tool = ClientRunTool(declared)
    for arguments in accepted:
        tool.validate(arguments)
    for arguments in not_asked:
        with pytest.raises(BadArguments):
            tool.validate(arguments)
    assert [validate_schema(value, declared.output_schema) for value in answered] == [[]] * len(answered)
    assert all(validate_schema(value, declared.output_schema) for value in not_answered)
