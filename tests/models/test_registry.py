"""A name → a model: which key it is given, where that key goes, and what is said when something is missing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat
from everturn.core.parts import TextPart
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import ConfigError, ModelError
from everturn.models.registry import VENDORS_ELSEWHERE, get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.testing.provider import Provider
from everturn.transport import HttpRequest
from everturn.transport.replay import RecordedResponse, ReplayTransport

EVERYTHING = {profile.key: f"key-of-{profile.vendor}" for profile in VENDORS.values() if profile.key}
OWN = {"EVERTURN_API_KEY": "own-key"}
REFUSAL = RecordedResponse([b"{}"], status=400)


async def sent_request(name: str, **how: Any) -> HttpRequest:
    """What goes out when this model is asked."""
    transport = ReplayTransport([REFUSAL])
    with pytest.raises(ModelError):
        async for _ in get_model(name, transport=transport, **how).stream(ModelRequest("m", "", [], [], {})):
            pass
    return transport.posts[0]


def secrets(post: HttpRequest) -> str:
    return "".join(post.headers.get(name, "") for name in ("authorization", "x-api-key", "x-goog-api-key", "api-key"))


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "how", "badge", "url"),
    [
        ("anthropic:claude-opus-5", {}, "anthropic:claude-opus-5", "https://api.anthropic.com/v1/messages"),
        ("openai:gpt-5", {}, "openai:gpt-5", "https://api.openai.com/v1/responses"),
        ("openai-chat:gpt-5", {}, "openai-chat:gpt-5", "https://api.openai.com/v1/chat/completions"),
        ("openrouter:a/b:free", {}, "openrouter:a/b:free", "https://openrouter.ai/api/v1/chat/completions"),
        ("ollama:qwen3:8b", {}, "ollama:qwen3:8b", "http://127.0.0.1:11434/api/chat"),
        ("ollama-chat:qwen3:8b", {}, "ollama-chat:qwen3:8b", "http://127.0.0.1:11434/v1/chat/completions"),
        ("ollama:m", {"base_url": "http://h:1/v1"}, "ollama:m", "http://h:1/api/chat"),
        (
            "gemini:gemini-3-pro",
            {},
            "gemini:gemini-3-pro",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        ("qwen3:8b", {"base_url": "http://h/v1/"}, "compatible:qwen3:8b", "http://h/v1/chat/completions"),
        ("m", {"base_url": "https://h"}, "compatible:m", "https://h/chat/completions"),
        ("compatible:m", {"base_url": "http://h"}, "compatible:m", "http://h/chat/completions"),
        ("anthropic:m", {"base_url": "http://h"}, "anthropic:m", "http://h/messages"),
    ],
)
async def test_a_name_leads_to_a_model(name: str, how: dict[str, Any], badge: str, url: str) -> None:
    assert get_model(name, environ=EVERYTHING, **how).name == badge
    assert (await sent_request(name, environ=EVERYTHING, **how)).url == url


async def test_a_profile_of_ones_own_leads_to_a_model() -> None:
    profile = replace(VENDORS["compatible"], vendor="acme", base_url="http://acme/v1", key="ACME_KEY")

    assert get_model("acme:one", profile=profile, environ={"ACME_KEY": "k"}).name == "acme:one"
    assert get_model("one:two", profile=profile, environ={"ACME_KEY": "k"}).name == "acme:one:two"
    assert secrets(await sent_request("acme:one", profile=profile, environ={"ACME_KEY": "k"})) == "Bearer k"


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if not VENDORS[vendor].cloud])
async def test_every_vendor_can_be_asked(vendor: str) -> None:
    where = {} if VENDORS[vendor].base_url else {"base_url": "http://127.0.0.1:9"}
    post = await sent_request(f"{vendor}:m", environ=EVERYTHING, **where)

    assert post.url.startswith(VENDORS[vendor].base_url)
    assert secrets(post).endswith(EVERYTHING.get(VENDORS[vendor].key, ""))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is not a model name: write vendor:model with one of the vendors openai, "),
        ("gpt-5", "for any other OpenAI-compatible server, set base_url"),
        ("antropic:claude", "did you mean anthropic:claude?"),
        ("anthropic", "did you mean anthropic:…?"),
        ("anthropic:", "'anthropic:' is not a model name: write the name of a model behind `anthropic:`"),
        ("google:gemini-3-pro", "did you mean gemini:gemini-3-pro?"),
        ("google-gla:gemini-3-pro", "did you mean gemini:gemini-3-pro?"),
        ("openai/gpt-5.2", "did you mean openai:gpt-5.2?"),
        ("vertex_ai/gemini-3-pro", "did you mean vertex:gemini-3-pro?"),
        ("openrouter/meta/llama-4", "did you mean openrouter:meta/llama-4?"),
        ("meta/llama-4", "is not a model name: write vendor:model"),
        ("compatible:m", "needs a base_url, the address of the server; for example http://127.0.0.1:8000/v1"),
        (
            "openai:gpt-5",
            "openai:gpt-5 needs a key: `everturn auth login openai` stores it, or set the environment variable OPENAI_API_KEY (in Python you can also pass key=… to get_model)",
        ),
    ],
)
def test_what_is_missing_is_said(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        get_model(name, environ={})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("api_key", "get_model() got an unexpected keyword argument 'api_key'; write key="),
        ("url", "write base_url="),
        ("temperature", "write Agent(get_model(…), params={…})"),
        ("base_ur", "did you mean 'base_url'?"),
        ("colour", "it takes: name, base_url, key, profile, "),
    ],
)
def test_an_unknown_argument_is_refused_with_the_one_to_use(argument: str, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        get_model("openai:gpt-5", **{argument: "k"})  # pyright: ignore[reportArgumentType]
    assert message in str(caught.value)
    assert "unknown" not in str(caught.value)


def test_every_vendor_that_is_suggested_exists() -> None:
    assert set(VENDORS_ELSEWHERE.values()) <= set(VENDORS)
    assert not set(VENDORS_ELSEWHERE) & set(VENDORS)


def test_a_chat_says_it_too() -> None:
    with pytest.raises(ConfigError, match="is not a model name"):
        Chat("nobody")


# Keys -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "how", "secret"),
    [
        ("anthropic:m", {}, "key-of-anthropic"),
        ("openai-chat:m", {}, "Bearer key-of-openai-chat"),
        ("anthropic:m", {"key": "mine"}, "mine"),
        ("m", {"base_url": "http://h", "key": "mine"}, "Bearer mine"),
        ("m", {"base_url": "http://h"}, "Bearer own-key"),
        ("ollama:m", {}, "Bearer own-key"),
        ("gemini:m", {"key": "mine"}, "mine"),
        ("gemini-chat:m", {"key": "mine"}, "Bearer mine"),
    ],
)
async def test_a_key_comes_from_where_it_should(name: str, how: dict[str, Any], secret: str) -> None:
    assert secrets(await sent_request(name, environ={**EVERYTHING, **OWN}, **how)) == secret


@pytest.mark.parametrize("name", [f"{vendor}:m" for vendor in VENDORS])
async def test_the_key_of_a_vendor_goes_to_that_vendor_only(name: str) -> None:
    post = await sent_request(name, base_url="http://127.0.0.1:9/v1", environ=EVERYTHING)

    assert secrets(post) == ""
    assert "key-of" not in f"{post.headers} {post.body!r} {post.url}"


@pytest.mark.parametrize("key", [" sk-1", "sk-1\n", "sk-1 \t", "sk-1\r\nx-evil: 1", "ключ", "sk-1\0"])
def test_a_key_that_was_not_pasted_whole_is_refused(key: str) -> None:
    for passed_key, environ in ((key, {}), ("", {"OPENAI_API_KEY": key})):
        with pytest.raises(ConfigError, match="check that you copied all of it") as caught:
            get_model("openai:m", key=passed_key, environ=environ)
        assert key.strip() not in str(caught.value)


async def test_a_key_is_never_shown() -> None:
    model = get_model(
        "openai:m",
        key="sk-secret",
        transport=ReplayTransport([RecordedResponse([b"{}"], status=401)]),
        retry=RetryPolicy(attempts=1),
    )
    with pytest.raises(ModelError, match="set OPENAI_API_KEY to a key that is valid there") as caught:
        async for _ in model.stream(ModelRequest("m", "", [], [], {})):
            pass
    assert "sk-secret" not in f"{caught.value!r} {model!r} {vars(model)!r}"


@pytest.mark.parametrize(
    ("name", "key", "environ", "advice"),
    [
        ("my-model", "sk-1", {}, "the server refused the key: set EVERTURN_API_KEY to a key that is valid there"),
        ("my-model", "", {"EVERTURN_API_KEY": "sk-1"}, "the server refused the key: set EVERTURN_API_KEY"),
        ("my-model", "", {}, "the server asks for a key, and none was sent: set EVERTURN_API_KEY to one"),
        ("vllm:m", "", {}, "none was sent: set EVERTURN_API_KEY to one"),
        (
            "openai:m",
            "",
            {"OPENAI_API_KEY": "sk-1"},
            "none was sent: set EVERTURN_API_KEY to one",
        ),  # not sent elsewhere
        ("my-model@audio-tts", "", {}, "none was sent: set EVERTURN_API_KEY to one"),
    ],
)
async def test_a_refused_key_and_a_missing_one_are_told_apart(
    name: str, key: str, environ: dict[str, str], advice: str
) -> None:
    transport = ReplayTransport([RecordedResponse([b'{"error": {"message": "no"}}'], status=401)])
    model = get_model(
        name,
        base_url="https://models.example/v1",
        key=key,
        environ=environ,
        transport=transport,
        retry=RetryPolicy(attempts=1),
    )
    with pytest.raises(ModelError) as caught:
        async for _ in model.stream(ModelRequest("m", "", [RequestMessage("user", (TextPart("hi"),))], [], {})):
            pass
    assert advice in str(caught.value)
    assert caught.value.kind == "key"


# Base URLs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "localhost:8000/v1",
        "ftp://h",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "//h/v1",
        "h",
        pytest.param("http://[::1"),
        pytest.param("http://h:port/v1"),
        pytest.param("http://h:99999/v1"),
        pytest.param("http://h/v1 x"),
        pytest.param("http://h/v1\r\nx: y"),
        pytest.param("http://h/v1?a=b"),
        pytest.param("http://h/v1#a"),
    ],
)
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not a base URL; it looks like http://127"):
        get_model("m", base_url=url, environ={})


async def test_where_no_name_is_resolved_the_network_is_to_be_checked() -> None:
    model = get_model("m", base_url="http://nowhere.invalid/v1", environ={}, retry=RetryPolicy(attempts=1))
    with pytest.raises(
        ModelError, match=r"no server answers at http://nowhere\.invalid: .*; check the network connection"
    ):
        async for _ in model.stream(ModelRequest("m", "", [], [], {})):
            pass


async def test_where_nobody_listens_is_said_and_tried_again() -> None:
    model = get_model("m", base_url="http://127.0.0.1:9/v1", environ={}, retry=RetryPolicy(initial_delay=0.0))
    with pytest.raises(
        ModelError, match=r"no server answers at http://127\.0\.0\.1:9: .*and the base URL right\?"
    ) as caught:
        async for _ in model.stream(ModelRequest("m", "", [], [], {})):
            pass
    assert (caught.value.kind, caught.value.retryable) == ("network", True)


async def test_a_password_in_a_base_url_is_never_shown() -> None:
    for url in ("http://me:secret@127.0.0.1:9/v1", "ftp://me:secret@h"):
        with pytest.raises(ConfigError) as caught:
            get_model("m", base_url=url, environ={})
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("openai:plain", "/v1"),
        ("anthropic:plain", "/v1"),
        ("compatible:plain", "/v1"),
        ("gemini:plain", "/v1beta"),
        ("ollama:plain", ""),
        ("compatible:image@image-gen", "/v1"),
    ],
)
async def test_without_a_transport_it_is_the_network(name: str, base: str) -> None:
    async with Provider(key="k") as provider:
        model = get_model(name, base_url=provider.url + base, key="k", environ={})
        request = ModelRequest("m", "", [RequestMessage("user", (TextPart("A turtle."),))], [], {})
        assert [chunk async for batch in model.stream(request) for chunk in batch]

    assert [seen.status for seen in provider.seen] == [200]
