"""The guide on providers, and what the testing guide says of them: what they claim beside their examples."""

import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from docs_src.by_name import ask
from docs_src.guides.test_echo_model import TestEcho as TestEcho
from docs_src.guides.test_model import TestMyModel as MyModel
from docs_src.guides.test_provider import (
    test_a_busy_server_is_asked_again_and_a_broken_answer_kept as test_a_busy_server_is_asked_again_and_a_broken_answer_kept,
)
from docs_src.guides.test_provider import test_a_file_is_read_and_told as test_a_file_is_read_and_told
from docs_src.guides.test_provider import (
    test_a_kept_answer_is_read_however_it_is_split as test_a_kept_answer_is_read_however_it_is_split,
)
from docs_src.guides.test_provider import test_a_misspelt_parameter_is_refused as test_a_misspelt_parameter_is_refused

from everturn import Chat, TurnError, TurnOptions, TurnSettings, get_model, tool
from everturn.cli import _parser
from everturn.core.ports import Model
from everturn.errors import ConfigError, ModelError
from everturn.models import FallbackModel, RetryPolicy
from everturn.models.failures import RETRYABLE
from everturn.models.formats.gemini_request import PLACEHOLDER_SIGNATURE
from everturn.models.profile import Profile
from everturn.models.vendors import VENDORS
from everturn.testing import MemoryStore, MortalStore
from everturn.testing.contracts import ProviderModelContract
from everturn.testing.contracts.model.output import OutputContract
from everturn.testing.provider import Call, Item, Provider, Say, ScriptedUsage, Status, Think
from everturn.testing.provider.builtin import builtin, without_family
from everturn.testing.provider.render.media_models import builtin_media
from everturn.transport import StreamLimits
from everturn.transport.live import CONNECT

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs/guides/providers.md").read_text(encoding="utf-8")
TESTING = (ROOT / "docs/guides/testing.md").read_text(encoding="utf-8")


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table under this head."""
    table = page.split(f"| {head} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def local_model(provider: Provider, name: str, **how: Any) -> Model:
    return get_model(name, base_url=f"{provider.url}/v1", **how)


async def say(chat: Chat, text: str = "Hi", **how: Any) -> str:
    return (await (await chat.send(text, **how))).text


# The first example -------------------------------------------------------------------------------------------------


async def test_the_first_example_prints_the_answer_and_its_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    async with Provider() as provider:
        provider.script("claude-opus-5", [[Say("Air scatters blue light most."), ScriptedUsage(input=14, output=7)]])
        await ask(local_model(provider, "anthropic:claude-opus-5"))
    assert capsys.readouterr().out == "Air scatters blue light most.\n14 tokens in, 7 out\n"


@pytest.mark.parametrize("page", ["docs/guides/providers.md", "docs/guides/testing.md"])
def test_the_command_lines_are_ones_that_everturn_reads(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^(?:\w+=\S+ )?everturn (chat .*)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        options = _parser().parse_args(shlex.split(line, comments=True))
        assert options.base_url or options.model.partition(":")[0] in VENDORS


# By name -----------------------------------------------------------------------------------------------------------

INPUTS: Mapping[str, frozenset[str]] = {
    "images, PDF, audio": frozenset({"image", "pdf", "audio"}),
    "images, PDF": frozenset({"image", "pdf"}),
    "images": frozenset({"image"}),
    "nothing": frozenset(),
}


def test_the_table_of_vendors_is_the_one_in_the_code() -> None:
    listed = [
        (*words(vendor), "".join(words(key)), format, INPUTS[reads])
        for vendor, key, format, reads in rows(GUIDE, "vendor | key in | format | reads beside text")
    ]
    assert listed == [(p.vendor, p.key, p.format, p.inputs) for p in VENDORS.values()]


def test_a_model_without_a_name_or_a_key_is_refused_before_anything_is_sent() -> None:
    for wrong in ("openia:gpt-5.2", "gpt-5.2", "compatible:m"):
        with pytest.raises(ConfigError):
            get_model(wrong, environ={})
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        get_model("anthropic:claude-opus-5", environ={})


def test_the_servers_of_the_table_are_found() -> None:
    found: list[str] = []
    for _, cell in rows(GUIDE, "server | model"):
        match = re.fullmatch(r'`get_model\("([^"]+)"(?:, base_url="([^"]+)")?\)`', cell)
        assert match is not None
        found.append(get_model(match[1], base_url=match[2] or "", environ={}).name)
    assert found == [
        "ollama:qwen3:8b",
        "vllm:Qwen/Qwen3-8B",
        "llamacpp:any",
        "llamacpp:any",
        "compatible:my-model",
    ]


async def test_the_key_of_a_vendor_goes_to_no_other_url_and_into_no_log() -> None:
    environ = {"OPENAI_API_KEY": "sk-theirs", "EVERTURN_API_KEY": "sk-mine"}
    async with Provider() as provider:
        model = local_model(provider, "openai:plain-n1", environ=environ)
        async with Chat(model, session="s") as chat:
            await say(chat)
            assert "sk-" not in repr(await chat.app.store.events("s"))
        assert provider.seen[0].headers["authorization"] == "Bearer sk-mine"
        assert "sk-" not in repr(vars(model))


async def test_a_redirect_is_not_followed_and_the_error_says_where_it_leads() -> None:
    async with Provider() as provider:
        provider.script("m", [[Status(307, headers={"location": "http://evil.example/"})]])
        async with Chat(local_model(provider, "m", key="k")) as chat:
            with pytest.raises(TurnError, match=r"evil\.example"):
                await say(chat)


# Gemini and Ollama -------------------------------------------------------------------------------------------------


async def test_parameters_go_where_ollama_looks_for_them_and_nothing_is_cut_off_in_silence() -> None:
    async with Provider() as provider, Chat(get_model("ollama:plain-n1", base_url=f"{provider.url}/v1")) as chat:
        await say(chat, params={"num_ctx": 8192, "think": False, "keep_alive": "10m", "max_tokens": 50})
        sent = provider.seen[0].body
    assert (sent["truncate"], sent["think"], sent["keep_alive"]) == (False, False, "10m")
    assert sent["options"] == {"num_ctx": 8192, "num_predict": 50}


async def test_a_prompt_that_ollama_would_cut_off_is_an_error_of_the_kind_context() -> None:
    async with Provider() as provider:
        refusal = '{"error": "the input length exceeds the context length"}'
        provider.script("m", [[Status(400, refusal)]])
        async with Chat(get_model("ollama:m", base_url=provider.url)) as chat:
            with pytest.raises(TurnError) as failed:
                await say(chat)
    assert failed.value.kind == "context"


async def test_of_the_choices_of_tools_ollama_hears_only_none() -> None:
    async with Provider() as provider:
        async with Chat(get_model("ollama:plain-n1", base_url=provider.url), tools=[look]) as chat:
            await say(chat, params={"tool_choice": "required"})
            await say(chat, params={"tool_choice": "none"})
        assert ["tools" in seen.body for seen in provider.seen] == [True, False]
        assert not any("tool_choice" in seen.body for seen in provider.seen)


async def test_parameters_go_where_gemini_looks_for_them_and_signatures_go_back_with_their_calls() -> None:
    async with Provider() as provider:
        provider.script("gemini-3-m", [[Think("Hm."), Call("look")], [Say("Seen.")]])
        model = get_model("gemini:gemini-3-m", base_url=f"{provider.url}/v1beta", key="k")
        async with Chat(model, tools=[look]) as chat:
            thinks = {"thinkingConfig": {"includeThoughts": True}}
            await say(chat, params={"top_p": 0.5, "temperature": 1, **thinks})
        first, second = [seen.body for seen in provider.seen]
    assert first["generationConfig"] == {"topP": 0.5, "temperature": 1, **thinks}
    (called,) = [part for part in second["contents"][1]["parts"] if "functionCall" in part]
    assert called["thoughtSignature"] != PLACEHOLDER_SIGNATURE


# Parameters --------------------------------------------------------------------------------------------------------


@tool(read_only=True)
async def look() -> str:
    return "seen"


def test_anthropic_is_told_how_long_an_answer_may_be() -> None:
    assert f"the default there is {VENDORS['anthropic'].default_max_tokens:,} " in GUIDE
    assert [words(row[0]) for row in rows(GUIDE, "parameter | meaning")] == [
        ["max_tokens"],
        ["reasoning"],
        ["output_schema"],
        ["tool_choice"],
    ]


async def test_parameters_come_from_settings_options_and_the_turn_and_go_out_as_they_are() -> None:
    async with Provider(strict=False) as provider:
        settings, options = TurnSettings(layers=({"a": 1, "b": 1, "c": 1},)), TurnOptions(params={"b": 2, "c": 2})
        async with Chat(local_model(provider, "plain-n1"), settings=settings, options=options) as chat:
            await say(chat)
            await say(chat, params={"c": 3})
        first, second = [seen.body for seen in provider.seen]
    assert [first[name] for name in "abc"] == [1, 2, 2]
    assert (second["a"], second["c"], second["model"]) == (1, 3, "plain-n1")


async def test_a_choice_of_tool_holds_for_every_step() -> None:
    async with Provider() as provider:
        provider.script("m", [[Call("look")], [Call("look")], [Say("Enough.")]], sequence=True)
        async with Chat(local_model(provider, "m"), tools=[look], options=TurnOptions(max_steps=2)) as chat:
            assert await say(chat, params={"tool_choice": "required"}) == "Enough."
        assert [seen.body.get("tool_choice") for seen in provider.seen] == ["required", "required", None]


async def test_marks_for_the_cache_can_be_left_out() -> None:
    async with Provider() as provider:
        async with Chat(local_model(provider, "anthropic:plain-n1"), system="Be brief.") as chat:
            await say(chat)
            await say(chat, params={"cache": False})
        assert ["cache_control" in repr(seen.body) for seen in provider.seen] == [True, False]
        assert not any("cache'" in repr(list(seen.body)) for seen in provider.seen)


# Other models ------------------------------------------------------------------------------------------------------


async def test_a_turn_finds_its_model_by_name_or_fails_as_config() -> None:
    async with Provider() as provider:
        other = local_model(provider, "plain-n1")
        for is_handed_over in (False, True):
            store, model = MemoryStore(), local_model(provider, "openai:plain-n1")
            mortal: Any = MortalStore(store, lives=1)  # it takes the turn, and dies
            first = Chat(model, store=mortal, session="s")
            turn = await first.send("Hi", model=other)
            await mortal.died.wait()
            await first.aclose()
            second = Chat(model, store=store, session="s")
            if is_handed_over:
                second.app.add_model(other)
            async with second:
                if is_handed_over:
                    assert (await second.turn(turn.id)).text
                else:
                    with pytest.raises(TurnError) as failed:
                        await second.turn(turn.id)
                    assert failed.value.kind == "config"


async def test_a_name_stands_for_the_model_that_came_last() -> None:
    async with Provider() as first_provider, Provider() as two:
        first, second = local_model(first_provider, "plain-n1"), local_model(two, "plain-n1")
        async with Chat(first) as chat:
            await say(chat, model=second)
            assert chat.app.model_for(first.name) is second
            await say(chat)
        assert (len(first_provider.seen), len(two.seen)) == (1, 1)


# When it fails -----------------------------------------------------------------------------------------------------


def test_the_table_of_the_retry_policy_has_its_fields_and_defaults() -> None:
    table = rows(GUIDE, "`RetryPolicy` | meaning | default")
    assert [name for row in table for name in words(row[0])] == list(RetryPolicy.__struct_fields__)
    assert [row[2] for row in table] == ["3", "0.5, 8", "60", "as long as the turn waits"]
    assert RetryPolicy() == RetryPolicy(3, 0.5, 8.0, 60.0, None)


def test_the_table_of_time_has_the_defaults() -> None:
    table = {words(row[0])[0]: float(row[1]) for row in rows(GUIDE, "`TurnSettings` | seconds | ends")}
    assert table == {
        name: getattr(TurnSettings(), name) for name in TurnSettings.__struct_fields__ if "timeout" in name
    }
    assert f"given up after {CONNECT:g} seconds" in GUIDE


def test_the_limits_are_those_in_the_code() -> None:
    sizes = [f"{getattr(StreamLimits(), name) // 2**20} MiB" for name in ("line", "event", "stream")]
    assert "at most {} in a line, {} in an event and {} in a stream".format(*sizes) in GUIDE


def test_the_table_of_errors_is_the_docstring_of_model_error() -> None:
    text = " ".join((ModelError.__doc__ or "").split())
    documented = {
        kind: actor
        for kinds, actor in re.findall(r"- ((?:`\w+`(?:, )?)+): ([\w ]+)", text)
        for kind in re.findall(r"\w+", kinds)
    }
    table = {words(kind)[0]: actor for kind, _, actor in rows(GUIDE, "kind | cause | who acts")}
    assert table.keys() == documented.keys()
    for kind, actor in table.items():
        assert actor.partition(":")[0] == documented[kind], kind
    assert {kind for kind, actor in table.items() if "retryable" in actor} == RETRYABLE


async def test_a_fallback_goes_on_after_any_error_and_names_who_wrote_the_answer() -> None:
    async with Provider() as provider:
        provider.script("one", [[Status(401)]])
        async with Chat(FallbackModel(local_model(provider, "one"), local_model(provider, "plain-n1"))) as chat:
            await say(chat)
            answer = (await chat.messages())[-1]
            assert answer.by == "compatible:one"
            assert answer.models == ("compatible:plain-n1",)


# Cost, and a vendor of one's own -----------------------------------------------------------------------------------


def test_the_extra_for_prices_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "everturn[prices]" in GUIDE
    assert "genai-prices" in project["optional-dependencies"]["prices"][0]


async def test_without_a_price_there_is_no_cost() -> None:
    async with Provider() as provider, Chat(local_model(provider, "plain-n1")) as chat:
        assert (await (await chat.send("Hi"))).usage.cost is None


def test_the_table_of_a_profile_has_all_its_fields() -> None:
    listed = [name for row in rows(GUIDE, "field | meaning | default") for name in words(row[0])]
    assert listed == list(Profile.__struct_fields__)


# The testing guide -------------------------------------------------------------------------------------------------


def test_the_table_of_items_has_every_item() -> None:
    listed = [name for row in rows(TESTING, "item | does") for name in words(row[0])]
    assert sorted(listed) == sorted(kind.__name__ for kind in get_args(Item))


def test_the_built_in_models_and_families_are_there() -> None:
    for name in ("plain", "tool1", "agent", "longargs", "plain-n500-p20"):
        assert builtin(name) is not None
    for name in ("picture", "voice", "ear"):
        assert builtin_media(name) is not None
        assert f"`{name}`" in TESTING
    (families,) = re.findall(r"there are (`mistral`[^.]+)\.", TESTING)
    assert len(words(families)) == 10
    for family in words(families):
        assert without_family(f"{family}-plain") == "plain"


def test_the_suite_of_the_guide_is_the_whole_one() -> None:
    assert issubclass(MyModel, ProviderModelContract)


class TestTheModelOfTheGuide(OutputContract):
    """A part of the suite, for all of it runs in tests/models."""

    format, has_seals, has_pdf = MyModel.format, MyModel.has_seals, MyModel.has_pdf
    connect = MyModel.connect
