"""One namespace for all tools, what a selection comes to, and sources that change while turns are under way."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

import pytest

from everturn import Chat, ToolContext, TurnOptions, tool
from everturn.core.canonical_json import JsonObject
from everturn.core.parts import ToolPart
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolRegistry, ToolSelection
from everturn.tools.rename import rename_tool
from everturn.tools.skills import Skill


class Far:
    """A tool from elsewhere."""

    def __init__(self, name: str, origin: str = "mcp:github", says: str = "done") -> None:
        self.spec = ToolSpec(name, "", {"type": "object"}, origin=origin)
        self._says = says

    def validate(self, arguments: JsonObject) -> None: ...

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object]:
        async def done() -> str:
            return self._says

        return done()


def far(*names: str, origin: str = "mcp:github") -> list[Far]:
    return [Far(name, origin) for name in names]


def office() -> ToolRegistry:
    files = ToolGroup("files", far("read_file", "write_file", origin="files"))
    web = ToolGroup("web", far("fetch", "search_web", origin="web"), on=True)
    return ToolRegistry([*far("look", "look_up"), files, web])


# Names ----------------------------------------------------------------------------------------------------------------


def test_two_tools_of_one_name_are_refused_with_their_origins_and_a_way_out() -> None:
    with pytest.raises(ConfigError) as refused:
        ToolRegistry([*far("search", origin="mcp:gitlab"), *far("search", origin="mcp:github")])
    assert str(refused.value) == (
        "there are two tools called 'search': of mcp:gitlab and of mcp:github; names must be unique: "
        'rename_tool(tool, "github_search") gives it another'
    )


@pytest.mark.parametrize("alike", ["Read_File", "read-file", "readFile", "READFILE"])
def test_names_a_model_may_take_for_each_other_are_refused(alike: str) -> None:
    with pytest.raises(ConfigError, match=f"names are alike, 'read_file' and '{alike}'"):
        ToolRegistry([*far("read_file"), ToolGroup("files", far(alike))])


@pytest.mark.parametrize(
    "name", ["invalid", "doom_loop", "load_skill", "find_tools", "read_result", "list_results", "Load-Skill"]
)
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is taken|is already used"):
        ToolRegistry(far(name))


def test_a_renamed_tool_stands_beside_the_other() -> None:
    original, other = Far("search", "mcp:gitlab"), rename_tool(Far("search"), "github_search")
    assert list(ToolRegistry([original, other]).enabled()) == ["search", "github_search"]
    assert other.spec.origin == "mcp:github"


async def test_a_renamed_tool_is_called_by_its_other_name() -> None:
    model = ScriptedModel(calls(call("github_search")), say("Done."))
    async with Chat(
        model, tools=[Far("search", says="one"), rename_tool(Far("search", says="two"), "github_search")]
    ) as chat:
        result = await (await chat.send("please"))
    assert outputs(result.message) == ["two"]


def test_what_is_not_a_tool_is_refused() -> None:
    class Plain: ...

    with pytest.raises(ConfigError, match="Plain is not a tool; pass a function"):
        ToolRegistry([Plain])
    with pytest.raises(ConfigError, match="Plain is not a tool; pass a function"):
        ToolRegistry([ToolGroup("some", [Plain])])


def test_two_groups_or_skills_of_one_name_are_refused() -> None:
    skill = Skill("tidy up", "", "Do.")
    with pytest.raises(ConfigError, match="two groups have the name 'a'"):
        ToolRegistry([ToolGroup("a"), ToolGroup("a")])
    with pytest.raises(ConfigError, match="two skills have the name 'Tidy Up', in 'a' and in 'b'"):
        ToolRegistry([ToolGroup("a", skills=[skill]), ToolGroup("b", skills=[Skill("Tidy Up", "", "Do.")])])
    with pytest.raises(ConfigError, match="two skills have the name 'tidy up', in 'a' and in 'a'"):
        ToolRegistry([ToolGroup("a", skills=[skill, skill])])


# Selections -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (None, "look look_up fetch search_web"),
        ((), ""),
        (("look",), "look"),
        (("look*",), "look look_up"),
        (("*",), "look look_up fetch search_web"),
        (("LOOK",), ""),
        (("read_file",), ""),  # its group is off
        (("fetch", "look"), "look fetch"),  # in their own order, so that prompts stay the same
        (("@files",), "read_file write_file"),
        (("@files/read_file",), "read_file"),
        (("@files/w*", "@web"), "write_file fetch search_web"),
        (("@nowhere", "@files/gone", "gone"), ""),
    ],
)
def test_a_selection_is_exactly_what_it_says(selection: ToolSelection, names: str) -> None:
    assert list(office().enabled(selection)) == names.split()


@pytest.mark.parametrize(
    ("selection", "groups"),
    [
        (None, {"web": ("fetch", "search_web")}),
        (("look",), {}),
        (("fetch",), {"web": ("fetch",)}),
        (("@files/read_file",), {"files": ("read_file",)}),
    ],
)
def test_a_group_is_on_as_far_as_its_tools_are(selection: ToolSelection, groups: dict[str, Sequence[str]]) -> None:
    assert {group.name: names for group, names in office().select(selection).groups} == groups


@pytest.mark.parametrize(
    ("selection", "groups"), [(None, ["on"]), (("@off",), ["off"]), (("@on",), ["on"]), (("look",), [])]
)
def test_a_group_without_tools_is_on_by_its_name_alone(selection: ToolSelection, groups: list[str]) -> None:
    registry = ToolRegistry([*far("look"), ToolGroup("on", on=True), ToolGroup("off")])
    assert [group.name for group, _ in registry.select(selection).groups] == groups


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        (["lok"], "no tool or group 'lok'; there are: look, look_up, fetch, search_web, @files, @web"),
        (["read_file"], "no tool or group 'read_file'"),  # its group is off
        (["look", "x*"], "no tool or group 'x[*]'"),
        (["@file"], "no tool or group '@file'; there are: @files, @web, look"),
        (["@files/rm"], "no tool or group '@files/rm'; there are: read_file, write_file$"),
        ("look", r"tools must be a list of names: tools=\['look'\]"),
        ([7], "tools of a turn are named"),
    ],
)
async def test_a_selection_of_what_is_not_there_is_refused_on_arrival(selection: list[str], text: str) -> None:
    async with Chat(ScriptedModel(), tools=office()) as chat:
        with pytest.raises(ConfigError, match=text):
            await chat.send("please", tools=selection)
    with pytest.raises(ConfigError, match=text):
        Chat(ScriptedModel(), tools=office(), options=TurnOptions(tools=selection))  # pyright: ignore[reportArgumentType]


async def test_a_turn_has_the_tools_that_were_selected_for_it_and_others_cannot_be_called() -> None:
    model = ScriptedModel(calls(call("look"), call("fetch")), say("Done."), say("And?"))
    async with Chat(model, tools=office()) as chat:
        result = await (await chat.send("please", tools=["look"]))
        await (await chat.send("again"))
    assert outputs(result.message) == ["done", "there is no tool called 'fetch'; there are: look. Nothing was run."]
    assert offered(model) == [["look"], ["look"], ["look", "look_up", "fetch", "search_web"]]


async def test_a_turn_without_tools_is_offered_none() -> None:
    model = ScriptedModel(say("Done."))
    async with Chat(model, tools=office(), options=TurnOptions(tools=())) as chat:
        await (await chat.send("please"))
    assert offered(model) == [[]]


# Sources that change --------------------------------------------------------------------------------------------------


def test_the_tools_of_one_origin_are_replaced_where_they_stood() -> None:
    registry = ToolRegistry([*far("a", "b"), *far("c", origin="other")])
    before = registry.enabled()
    registry.replace("mcp:github", far("b", "d"))
    assert list(registry.enabled()) == ["b", "d", "c"]
    assert list(registry.tools) == ["b", "d", "c"]
    assert list(before) == ["a", "b", "c"]  # whoever works with it has it whole


def test_what_is_replaced_stays_in_its_group_though_it_was_gone_meanwhile() -> None:
    registry = ToolRegistry([ToolGroup("hub", far("a")), *far("c", origin="other")])
    registry.replace("mcp:github", [])
    registry.replace("mcp:github", far("a", "d"))
    assert list(registry.enabled()) == ["c"]
    assert list(registry.enabled(("@hub",))) == ["a", "d"]


def test_a_source_may_be_given_its_group_when_it_comes() -> None:
    registry = ToolRegistry([ToolGroup("hub", rules="Be kind.")])
    registry.replace("mcp:github", far("a"), group="hub")
    assert (list(registry.enabled()), list(registry.enabled(("@hub",)))) == ([], ["a"])
    with pytest.raises(ConfigError, match="no group 'hob'; there are: hub"):
        registry.replace("mcp:other", [], group="hob")


def test_a_group_whose_source_is_gone_is_not_spoken_of() -> None:
    registry = ToolRegistry([ToolGroup("hub", far("a"), rules="Use a.", on=True)])
    registry.replace("mcp:github", [])
    assert registry.select().groups == ()


@pytest.mark.parametrize(
    ("fresh", "text"),
    [
        (far("d", "c"), "two tools called 'c'"),
        (far("d", origin="else"), "is of else; only tools of mcp:github"),
        (far("d", "invalid"), "taken"),
    ],
)
def test_a_replacement_that_cannot_be_changes_nothing(fresh: list[Far], text: str) -> None:
    registry = ToolRegistry([*far("a"), *far("c", origin="other")])
    before = registry.enabled()
    with pytest.raises(ConfigError, match=text):
        registry.replace("mcp:github", fresh)
    assert registry.enabled() is before
    registry.replace("mcp:github", far("d"))
    assert list(registry.enabled()) == ["d", "c"]


def test_tools_of_one_origin_in_several_places_are_replaced_only_where_it_is_said() -> None:
    registry = ToolRegistry([*far("a"), ToolGroup("hub", far("b"))])
    with pytest.raises(ConfigError, match="are in several groups"):
        registry.replace("mcp:github", far("c"))
    registry.replace("mcp:github", far("c"), group="hub")
    assert (list(registry.enabled()), list(registry.enabled(("@hub",)))) == ([], ["c"])


async def test_the_next_request_of_a_turn_has_the_tools_that_came_meanwhile() -> None:
    registry = ToolRegistry(far("far"))

    @tool
    async def connect() -> str:
        registry.replace("mcp:github", far("further", "near"))
        return "connected"

    registry.replace(connect.spec.origin, [connect])
    model = ScriptedModel(calls(call("connect")), calls(call("near"), call("far")), say("Done."))
    async with Chat(model, tools=registry) as chat:
        result = await (await chat.send("please"))
    assert offered(model)[:2] == [["far", "connect"], ["further", "near", "connect"]]
    assert outputs(result.message)[1] == "done"
    assert outputs(result.message)[2].startswith("there is no tool called 'far'")


def test_the_tools_of_a_turn_are_worked_out_once() -> None:
    registry = office()
    assert registry.enabled(("@files",)) is registry.enabled(("@files",))
    for number in range(1_000):  # selections come from outside: not all of them are kept
        registry.enabled((f"x{number}",))
    assert len(registry._looks) < 500


# Helpers --------------------------------------------------------------------------------------------------------------


def outputs(message: object) -> list[str]:
    parts = getattr(message, "parts", ())
    return [part.output.text for part in parts if isinstance(part, ToolPart) and part.output is not None]


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in request.tools] for request in model.requests]
