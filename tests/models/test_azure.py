"""Azure OpenAI: requests are those of the `openai` package's own client, and keys go to their resource only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import openai
import pytest

from everturn.core.chunks import Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.file_uploads import uploads_of
from everturn.core.parts import TextPart, Usage
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import ConfigError, ModelError
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.uploads import FileReferences
from everturn.testing.provider.media.multipart import read_form
from everturn.transport import HttpRequest
from everturn.transport.replay import RecordedResponse, ReplayTransport

ENDPOINT = "https://acme.openai.azure.com"
ENVIRON = {"AZURE_OPENAI_ENDPOINT": ENDPOINT, "AZURE_OPENAI_API_KEY": "azure-secret-key"}
CLASSIC = "2025-04-01-preview"
REFUSAL = RecordedResponse([b"{}"], status=400)
REQUEST = ModelRequest("m", "Be brief.", [RequestMessage("user", (TextPart("Hi."),))], [], {"max_tokens": 64})


async def sent(name: str, environ: Mapping[str, str], **how: Any) -> HttpRequest:
    transport = ReplayTransport([REFUSAL])
    with pytest.raises(ModelError):
        async for _ in get_model(name, transport=transport, environ=environ, **how).stream(REQUEST):
            pass
    return transport.posts[0]


def client_request(body: dict[str, Any], path: str, environ: Mapping[str, str], token: str = "") -> httpx2.Request:
    """What the `openai` package sends for the same body."""

    def create(client: Any) -> None:
        (client.chat.completions.create if path == "/chat/completions" else client.responses.create)(**body)

    return client_request_of(create, environ, token)


def client_request_of(send: Callable[[Any], None], environ: Mapping[str, str], token: str = "") -> httpx2.Request:
    """The first request of a client of the `openai` package."""
    caught: list[httpx2.Request] = []

    def catch(request: httpx2.Request) -> httpx2.Response:
        caught.append(request)
        raise httpx2.ConnectError("captured")

    http = httpx2.Client(transport=httpx2.MockTransport(catch))
    credentials: dict[str, Any] = (
        {"azure_ad_token": token} if token else {"api_key": environ.get("AZURE_OPENAI_API_KEY")}
    )
    client: Any
    if version := environ.get("OPENAI_API_VERSION"):
        client = openai.AzureOpenAI(
            azure_endpoint=environ["AZURE_OPENAI_ENDPOINT"],
            api_version=version,
            http_client=http,
            max_retries=0,
            **credentials,
        )
    else:
        client = openai.OpenAI(
            base_url=f"{environ['AZURE_OPENAI_ENDPOINT']}/openai/v1",
            api_key=token or environ["AZURE_OPENAI_API_KEY"],
            http_client=http,
            max_retries=0,
        )
    with pytest.raises(openai.APIConnectionError):
        send(client)
    return caught[0]


@pytest.mark.parametrize("version", ["", CLASSIC], ids=["v1", "classic"])
@pytest.mark.parametrize(("vendor", "path"), [("azure-chat", "/chat/completions"), ("azure", "/responses")])
@pytest.mark.parametrize("deployment", ["gpt-5.2", "my deployment", "a/b?c#e%2f..", "ключ"])
async def test_a_request_is_that_of_the_openai_package(vendor: str, path: str, version: str, deployment: str) -> None:
    environ = {**ENVIRON, **({"OPENAI_API_VERSION": version} if version else {})}

    ours = await sent(f"{vendor}:{deployment}", environ)
    body = json.loads(ours.body)
    theirs = client_request(body, path, environ)

    assert ours.url == str(theirs.url)
    assert body == json.loads(theirs.content)
    if version:  # its client for the v1 API has a bearer key, which Azure takes as well
        assert ours.headers["api-key"] == theirs.headers["api-key"] == "azure-secret-key"
    else:
        assert ours.headers["api-key"] == theirs.headers["authorization"].removeprefix("Bearer ")


async def test_a_token_of_entra_id_is_a_bearer_token() -> None:
    environ = {"AZURE_OPENAI_ENDPOINT": ENDPOINT, "AZURE_OPENAI_AD_TOKEN": "entra-token", "OPENAI_API_VERSION": CLASSIC}

    ours = await sent("azure-chat:m", environ)

    theirs = client_request(json.loads(ours.body), "/chat/completions", environ, "entra-token")
    assert ours.headers["authorization"] == theirs.headers["authorization"] == "Bearer entra-token"
    assert "api-key" not in ours.headers


@pytest.mark.parametrize("suffix", ["", "/", "/openai", "/openai/v1", "/openai/v1/"])
async def test_an_endpoint_may_be_given_in_the_forms_that_azure_shows(suffix: str) -> None:
    environ = {**ENVIRON, "AZURE_OPENAI_ENDPOINT": ENDPOINT + suffix}

    assert (await sent("azure:m", environ)).url == f"{ENDPOINT}/openai/v1/responses"


@pytest.mark.parametrize(
    ("version", "url"),
    [
        ("v1", f"{ENDPOINT}/openai/v1/responses"),
        ("preview", f"{ENDPOINT}/openai/v1/responses?api-version=preview"),
        ("x&y#z", f"{ENDPOINT}/openai/responses?api-version=x%26y%23z"),
    ],
)
async def test_a_version_is_a_part_of_the_url(version: str, url: str) -> None:
    assert (await sent("azure:m", {**ENVIRON, "OPENAI_API_VERSION": version})).url == url


# Keys -----------------------------------------------------------------------------------------------------------------

AMBIENT = {**ENVIRON, "AZURE_OPENAI_AD_TOKEN": "entra-token", "EVERTURN_API_KEY": "own-key"}


@pytest.mark.parametrize("vendor", ["azure", "azure-chat"])
@pytest.mark.parametrize(
    "url", ["https://elsewhere.example", f"{ENDPOINT}.evil.example", f"{ENDPOINT}@evil", "http://h"]
)
async def test_credentials_of_the_environment_go_to_no_other_server(vendor: str, url: str) -> None:
    if "@" in url:
        with pytest.raises(ConfigError, match="not contain a password"):
            get_model(f"{vendor}:m", base_url=url, environ=AMBIENT)
        return
    post = await sent(f"{vendor}:m", AMBIENT, base_url=url)

    assert post.headers["api-key"] == "own-key"
    for secret in ("azure-secret-key", "entra-token"):
        assert secret not in f"{post.url} {post.headers} {post.body!r}"


async def test_a_base_url_that_is_the_endpoint_of_the_environment_gets_its_key() -> None:
    post = await sent("azure:m", ENVIRON, base_url=f"{ENDPOINT}/openai/v1/")

    assert post.headers["api-key"] == "azure-secret-key"


async def test_without_an_endpoint_or_a_key_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="set AZURE_OPENAI_ENDPOINT, for example"):
        get_model("azure:m", environ={"AZURE_OPENAI_API_KEY": "k"})
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        ConfigError, match=r"set AZURE_OPENAI_API_KEY.*AZURE_OPENAI_AD_TOKEN, or install everturn\[azure"
    ):
        get_model("azure:m", environ={"AZURE_OPENAI_ENDPOINT": ENDPOINT})
    with pytest.raises(ConfigError, match="is not a base URL"):
        get_model("azure:m", environ={**ENVIRON, "AZURE_OPENAI_ENDPOINT": "acme.openai.azure.com"})


def test_images_and_speech_are_not_had_from_a_cloud() -> None:
    with pytest.raises(ConfigError, match="azure has no supported models of the type image-gen"):
        get_model("azure:gpt-image-1@image-gen", environ=ENVIRON)


# Content filter -------------------------------------------------------------------------------------------------------


async def chunks(name: str, answer: RecordedResponse) -> list[Chunk]:
    model = get_model(name, environ=ENVIRON, transport=ReplayTransport([answer]), retry=RetryPolicy(attempts=1))
    return [chunk async for batch in model.stream(REQUEST) for chunk in batch]


FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"hate": {"filtered": True, "severity": "high"}},
        },
    }
}


@pytest.mark.parametrize("vendor", ["azure", "azure-chat"])
async def test_a_prompt_that_the_content_filter_stops_is_filtered(vendor: str) -> None:
    answer = RecordedResponse([json.dumps(FILTERED).encode()], status=400)

    assert await chunks(f"{vendor}:m", answer) == [FinishChunk("content_filter", "content_filter")]


async def test_a_request_that_only_mentions_the_filter_is_wrong_all_the_same() -> None:
    wrong = {"error": {"message": "Unknown parameter: 'content_filter'.", "code": "unknown_parameter"}}

    with pytest.raises(ModelError) as caught:
        await chunks("azure:m", RecordedResponse([json.dumps(wrong).encode()], status=400))
    assert caught.value.kind == "request"


async def test_an_answer_with_the_results_of_the_filter_is_read() -> None:
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    bodies = [
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}]},
        {"choices": [{"index": 0, "delta": {"content": "Hel"}, "content_filter_results": safe}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
    ]
    stream = b"".join(b"data: %s\n\n" % json.dumps(body).encode() for body in bodies) + b"data: [DONE]\n\n"

    read = await chunks("azure-chat:m", RecordedResponse([stream]))

    assert TextChunk("Hel") in read
    assert UsageChunk(Usage(input=5, output=1)) in [
        UsageChunk(Usage(chunk.usage.input, chunk.usage.output)) for chunk in read if isinstance(chunk, UsageChunk)
    ]
    assert read[-1] == FinishChunk("content_filter", "content_filter")


@pytest.mark.parametrize("version", ["", CLASSIC], ids=["v1", "classic"])
async def test_an_upload_is_that_of_the_openai_package(version: str) -> None:
    environ = {**ENVIRON, **({"OPENAI_API_VERSION": version} if version else {})}
    transport = ReplayTransport([RecordedResponse([b'{"id": "file-1", "expires_at": 5}'])])
    model = get_model("azure:gpt-5.2", transport=transport, environ=environ, upload_above=1)
    (references,) = uploads_of(model)
    assert isinstance(references, FileReferences)
    await references._api.upload("upload-1.pdf", "application/pdf", b"%PDF-1.4")
    ours = transport.posts[0]

    def upload(client: Any) -> None:
        client.files.create(
            file=("upload-1.pdf", b"%PDF-1.4", "application/pdf"),
            purpose="assistants",
            expires_after={"anchor": "created_at", "seconds": 86_400},
        )

    theirs = client_request_of(upload, environ)
    assert ours.url == str(theirs.url)
    if version:  # the v1 API takes the key in either header, and the package sends the other one
        assert ours.headers["api-key"] == theirs.headers["api-key"]
    assert fields_of(ours.headers["content-type"], ours.body) == fields_of(
        theirs.headers["content-type"], theirs.read()
    )


def fields_of(content_type: str, body: bytes) -> list[tuple[str, str | None, bytes]]:
    return sorted((field.name, field.filename, field.data) for field in read_form(content_type, body))
