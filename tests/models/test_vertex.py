"""Vertex AI: requests are those of google-genai and of Anthropic's own client, and tokens go to Google only."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.lib.vertex import AnthropicVertex
from google.oauth2.credentials import Credentials

from everturn.core.parts import FilePart, Opaque, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.errors import ConfigError, ModelError
from everturn.models.registry import get_model
from everturn.transport import HttpRequest
from everturn.transport.replay import RecordedResponse, ReplayTransport

with warnings.catch_warnings():  # one of its texts has an invalid escape, of which the compiler warns
    warnings.simplefilter("ignore")
    import google.genai as genai
    from google.genai import types

ENVIRON = {"GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
REFUSAL = RecordedResponse([b"{}"], status=400)
LOCATIONS = ["global", "us-central1", "europe-west4", "us", "eu"]
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})


def history(vendor: str, seal: dict[str, str]) -> list[RequestMessage]:
    thought = ReasoningPart("Hm.", Opaque(vendor, json.dumps(seal)))
    return [
        RequestMessage("user", (TextPart("Hi."), FilePart("png", "image/png", 3, "a.png"))),
        RequestMessage(
            "assistant", (thought, TextPart("I look."), RequestCall("c1", "look", '{"path": "a"}', provider_id="p1"))
        ),
        RequestMessage("tool", (RequestResult("c1", "look", "empty"),)),
    ]


async def sent(name: str, environ: Mapping[str, str] = ENVIRON, key: str = "ya29.token", **how: Any) -> HttpRequest:
    transport = ReplayTransport([REFUSAL])
    seal = {"thoughtSignature": "c2ln"} if "gemini" in name else {"signature": "sig"}
    params = {"max_tokens": 64, "tool_choice": "look", **how.pop("params", {"topP": 0.5} if "gemini" in name else {})}
    request = ModelRequest("m", "Be brief.", history(name, seal), [TOOL], params, {"png": b"png"})
    with pytest.raises(ModelError):
        async for _ in get_model(name, transport=transport, environ=environ, key=key, **how).stream(request):
            pass
    return transport.posts[0]


def catching(caught: list[httpx2.Request]) -> httpx2.MockTransport:
    def catch(request: httpx2.Request) -> httpx2.Response:
        caught.append(request)
        raise httpx2.ConnectError("captured")

    return httpx2.MockTransport(catch)


def google_request(model: str, body: dict[str, Any], location: str) -> httpx2.Request:
    """What google-genai sends, given our body in its own types; they refuse fields that they do not know."""
    caught: list[httpx2.Request] = []
    client = genai.Client(
        vertexai=True,
        project="acme",
        location=location,
        credentials=Credentials("ya29.token"),
        http_options=types.HttpOptions(client_args={"transport": catching(caught)}),
    )
    generation = types.GenerationConfig.model_validate(body["generationConfig"])
    config = types.GenerateContentConfig(
        **generation.model_dump(exclude_none=True),
        system_instruction=types.Content.model_validate(body["systemInstruction"]),
        tools=[types.Tool.model_validate(tool) for tool in body["tools"]],
        tool_config=types.ToolConfig.model_validate(body["toolConfig"]),
    )
    contents = [types.Content.model_validate(content) for content in body["contents"]]
    with pytest.raises(httpx2.ConnectError):
        list(client.models.generate_content_stream(model=model, contents=contents, config=config))
    return caught[0]


def camel(value: Any) -> Any:
    """JSON with the names of the API: google-genai writes some of them with underscores, and types in capitals."""
    if isinstance(value, dict):
        return {re.sub("_([a-z])", lambda found: found[1].upper(), key): camel(item) for key, item in value.items()}
    return [camel(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("location", LOCATIONS)
async def test_a_request_for_gemini_is_that_of_google_genai(location: str) -> None:
    ours = await sent("vertex:gemini-3-pro-preview", {**ENVIRON, "GOOGLE_CLOUD_LOCATION": location})
    body = json.loads(ours.body)

    theirs = google_request("gemini-3-pro-preview", body, location)

    assert ours.url == str(theirs.url)
    assert body == json.loads(
        re.sub('"(OBJECT|STRING)"', lambda found: found[0].lower(), json.dumps(camel(json.loads(theirs.content))))
    )
    assert ours.headers["authorization"] == "Bearer ya29.token"
    assert "x-goog-api-key" not in ours.headers


@pytest.mark.parametrize("location", LOCATIONS)
async def test_a_request_for_claude_is_that_of_anthropics_client(location: str) -> None:
    ours = await sent("vertex:claude-opus-4-5@20251101", {**ENVIRON, "GOOGLE_CLOUD_LOCATION": location})
    body = json.loads(ours.body)
    caught: list[httpx2.Request] = []
    client = AnthropicVertex(
        region=location,
        project_id="acme",
        access_token="ya29.token",
        http_client=httpx2.Client(transport=catching(caught)),
        max_retries=0,
    )
    # The client has a newer version of the API as its default; ours is the one that the `messages` format is written for.
    version = body.pop("anthropic_version")
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(model="claude-opus-4-5@20251101", **body, extra_body={"anthropic_version": version})

    assert httpx2.URL(ours.url.replace("%40", "@")) == caught[0].url
    assert {**body, "anthropic_version": "vertex-2023-10-16"} == json.loads(caught[0].content)
    assert (version, "model" in body) == ("vertex-2023-10-16", False)
    assert ours.headers["authorization"] == caught[0].headers["authorization"]
    assert "anthropic-version" not in ours.headers
    assert "x-api-key" not in ours.headers


@pytest.mark.parametrize("model", ["gemini-x/../../y", "gemini-?alt=json&key=1#", "gemini-%2e%2e/", "claude-a/b:c"])
async def test_a_name_stays_in_its_place_of_the_path(model: str) -> None:
    post = await sent(f"vertex:{model}")

    path, _, query = post.url.partition("?")
    assert path.count("/") == 11
    assert path.startswith("https://europe-west4-aiplatform.googleapis.com/v1")
    assert query == ("alt=sse" if model.startswith("gemini") else "")


@pytest.mark.parametrize(
    ("level", "config"), [("high", {"thinkingLevel": "high"}), ("none", {"thinkingLevel": "minimal"})]
)
async def test_an_effort_is_written_as_for_gemini(level: str, config: dict[str, str]) -> None:
    post = await sent("vertex:gemini-3-pro-preview", params={"reasoning": level})

    assert json.loads(post.body)["generationConfig"]["thinkingConfig"] == config


# Credentials ----------------------------------------------------------------------------------------------------------


class Refreshed:
    """Credentials that have one token after another."""

    tokens = 0
    token = ""
    expiry: Any = None

    def refresh(self, request: object) -> None:
        from datetime import UTC, datetime, timedelta

        self.tokens += 1
        self.token = f"ya29.secret-{self.tokens}"
        self.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Refreshed:
    """A machine with Application Default Credentials."""
    credentials = Refreshed()
    monkeypatch.setattr("google.auth.default", lambda scopes: (credentials, "acme"))
    return credentials


async def test_the_credentials_of_the_machine_are_used_and_their_token_is_cached(machine: Refreshed) -> None:
    transport = ReplayTransport([REFUSAL, REFUSAL, RecordedResponse([b"{}"], status=401), REFUSAL])
    model = get_model("vertex:gemini-2.5-pro", transport=transport, environ=ENVIRON)
    for _ in range(4):
        with pytest.raises(ModelError):
            async for _ in model.stream(ModelRequest("m", "", [], [], {})):
                pass

    used = [post.headers["authorization"] for post in transport.posts]
    assert used == ["Bearer ya29.secret-1"] * 3 + ["Bearer ya29.secret-2"]  # a refused token is not used again


async def test_a_token_in_an_error_is_not_repeated(machine: Refreshed) -> None:
    body = json.dumps({"error": {"code": 401, "message": "Bad token ya29.secret-1."}}).encode()
    model = get_model(
        "vertex:gemini-2.5-pro", transport=ReplayTransport([RecordedResponse([body], status=401)]), environ=ENVIRON
    )
    with pytest.raises(ModelError, match=r"Bad token \*\*\*") as caught:
        async for _ in model.stream(ModelRequest("m", "", [], [], {})):
            pass
    assert "secret" not in f"{caught.value!r} {model!r}"


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example", "http://127.0.0.1:9", "https://aiplatform.googleapis.com"]
)
async def test_the_credentials_of_the_machine_go_to_no_other_server(machine: Refreshed, url: str) -> None:
    post = await sent("vertex:gemini-2.5-pro", base_url=url, key="")

    assert "authorization" not in post.headers
    assert machine.tokens == 0


async def test_they_go_to_the_server_that_the_environment_names(machine: Refreshed) -> None:
    environ = {**ENVIRON, "GOOGLE_VERTEX_BASE_URL": "https://europe-west4-aiplatform.p.googleapis.com/"}

    post = await sent("vertex:gemini-2.5-pro", environ, key="")

    assert post.url.startswith("https://europe-west4-aiplatform.p.googleapis.com/v1beta1/projects/acme/")
    assert post.headers["authorization"] == "Bearer ya29.secret-1"


@pytest.mark.parametrize("location", ["evil.example/", "a b", "x@y", "EU", "-a", "a" * 64, "europe-west4.evil"])
def test_a_location_leads_to_no_other_host(location: str) -> None:
    with pytest.raises(ConfigError, match="not the name of a region"):
        get_model("vertex:gemini-2.5-pro", environ={**ENVIRON, "GOOGLE_CLOUD_LOCATION": location}, key="k")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="set GOOGLE_CLOUD_PROJECT"):
        get_model("vertex:gemini-2.5-pro", environ={})
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"install everturn\[vertex\]"):
        get_model("vertex:gemini-2.5-pro", environ=ENVIRON)
