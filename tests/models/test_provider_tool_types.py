"""The tools that providers run, as requests declare them and the strict provider checks them, against the pinned packages.

That every type of these packages is mapped or has a reason, `test_vendor_facts.py` holds.
"""

from __future__ import annotations

from typing import Any, Required, get_args, get_origin

import pytest

from everturn.models.formats import gemini_server_tools, messages_server_tools, responses_server_tools
from everturn.models.formats.provider_tools import DECLARATIONS
from everturn.testing.provider.strict import clouds, items, proto, server_blocks
from tools.vendor_facts.inventory import hints, literals, members, types_of
from tools.vendor_facts.reviewed import GEMINI, MAPPED

anthropic_types = pytest.importorskip("anthropic.types")
openai_types = pytest.importorskip("openai.types.responses")
google_types = pytest.importorskip("google.genai.types")
google_models = pytest.importorskip("google.genai.models")


def required(cls: Any) -> set[str]:
    return {name for name, hint in hints(cls).items() if get_origin(hint) is Required} - {"type"}


def test_tools_of_anthropic() -> None:
    declared = {declaration["type"] for declaration in DECLARATIONS["messages"].values()}
    assert declared <= types_of(anthropic_types.ToolUnionParam)
    assert literals(anthropic_types.ServerToolUseBlock, "name") == set(messages_server_tools.CALL_NAMES)


def test_tools_of_openai_exist() -> None:
    declared = {declaration["type"] for declaration in DECLARATIONS["responses"].values()}
    assert declared <= types_of(openai_types.ToolParam)
    assert set(responses_server_tools.INCLUDES.values()) <= set(get_args(openai_types.ResponseIncludable))


def test_tools_of_google() -> None:
    tools = [*DECLARATIONS["gemini"].values(), *DECLARATIONS["vertex"].values()]
    declared = {field for declaration in tools for field in declaration}
    assert declared == {field for field, why in GEMINI["Tool"].items() if why == MAPPED}
    config = google_types.ToolConfig.model_fields
    assert "includeServerSideToolInvocations" in {field.alias for field in config.values()}


def refuses(convert: str, cls: Any, field: str, value: Any) -> bool:
    """Whether google-genai sends no such field to the Gemini API (`mldev`), or to Vertex AI."""
    try:
        getattr(google_models, convert)(cls.model_validate({field: value}))
    except ValueError as error:
        return "only supported in" in str(error)
    return False


def test_google_genai_refuses_the_fields_that_only_the_other_api_has() -> None:
    tool = google_types.Tool
    values: dict[str, Any] = {"mcpServers": [{"name": "a"}]}
    fields = [str(field.alias) for field in tool.model_fields.values() if field.alias != "functionDeclarations"]
    for field in fields:
        value = values.get(field, {})
        assert refuses("_Tool_to_mldev", tool, field, value) == (field in clouds.VERTEX_TOOLS), field
        assert refuses("_Tool_to_vertex", tool, field, value) == (field in clouds.GEMINI_API_TOOLS), field
    for field in clouds.GEMINI_API_CONFIG:
        assert refuses("_ToolConfig_to_vertex", google_types.ToolConfig, field, True)
    for field in clouds.GEMINI_API_PARTS:
        assert refuses("_Part_to_vertex", google_types.Part, field, {})
    for field in gemini_server_tools.PARTS:
        assert refuses("_Part_to_vertex", google_types.Part, field, {}) == (field in clouds.GEMINI_API_PARTS)


@pytest.mark.parametrize("name", ["ExecutableCode", "CodeExecutionResult", "ToolCall", "ToolResponse"])
def test_the_strict_provider_has_the_fields_of_google(name: str) -> None:
    fields = getattr(google_types, name).model_fields
    assert set(proto.MESSAGES[name]) == {field.alias or python for python, field in fields.items()}
    for kind, values in (("ToolType", "ToolType"), ("Outcome", "Outcome"), ("Language", "Language")):
        known = {each.value for each in getattr(google_types, values)}
        assert set(proto.ENUMS[kind]) == {value for value in known if "UNSPECIFIED" not in value}


def test_the_strict_provider_has_the_rules_of_the_packages() -> None:
    assert set(server_blocks.DECLARATIONS) | {"custom"} == types_of(anthropic_types.ToolUnionParam)
    assert set(server_blocks.CALL_NAMES) == literals(anthropic_types.ServerToolUseBlockParam, "name")
    assert set(server_blocks.RESULTS) <= types_of(anthropic_types.ContentBlockParam)
    params = {kind: cls for cls in members(openai_types.ResponseInputItemParam) for kind in literals(cls)}
    for kind, fields in items.HOSTED.items():
        assert set(fields) == required(params[kind]), kind
