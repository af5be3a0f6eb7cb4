"""Amazon Bedrock: requests fit botocore's model of the service, signatures are botocore's, and credentials go to AWS only."""

# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.parts import FilePart, Opaque, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.errors import ConfigError, ModelError
from everturn.models.clouds.aws_signature import AwsCredentials, sign_request
from everturn.models.clouds.bedrock import AwsSigner
from everturn.models.failures import response_error
from everturn.models.registry import get_model
from everturn.transport import HttpRequest
from everturn.transport.replay import RecordedResponse, ReplayTransport

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
ENVIRON = {"AWS_REGION": "eu-central-1", **KEYS}
WITH_KEY = {"AWS_REGION": "us-east-1", "AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key-abc"}
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FILES = {"png": b"\x89PNG", "pdf": b"%PDF-1.7"}
NOW = datetime(2026, 11, 18, 20, 35, 6, tzinfo=UTC)


def service_model() -> Any:
    return botocore.session.Session().get_service_model("bedrock-runtime")


CONVERSE = service_model().operation_model("ConverseStream")


def history(vendor: str) -> list[RequestMessage]:
    thought = ReasoningPart("Hm.", Opaque(vendor, json.dumps({"signature": "c2ln"})))
    hidden = ReasoningPart("", Opaque(vendor, json.dumps({"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="})))
    picture, letter = FilePart("png", "image/png", 4, "a.png"), FilePart("pdf", "application/pdf", 8, "b.pdf")
    return [
        RequestMessage("user", (picture, letter)),
        RequestMessage("assistant", (hidden, thought, TextPart("I look."), RequestCall("c1", "look", '{"path": "a"}'))),
        RequestMessage("tool", (RequestResult("c1", "look", "no such file", is_error=True, files=(picture, letter)),)),
    ]


async def sent(
    name: str = f"bedrock:{CLAUDE}",
    environ: Mapping[str, str] = ENVIRON,
    params: dict[str, Any] | None = None,
    tools: list[ToolSpec] | None = None,
    messages: list[RequestMessage] | None = None,
    **how: Any,
) -> HttpRequest:
    transport = ReplayTransport([RecordedResponse([b"{}"], status=400)])
    request = ModelRequest(
        "m",
        "Be brief.",
        history(name) if messages is None else messages,
        [TOOL] if tools is None else tools,
        {"max_tokens": 64, **(params or {})},
        FILES,
    )
    with pytest.raises(ModelError):
        async for _ in get_model(name, transport=transport, environ=environ, **how).stream(request):
            pass
    return transport.posts[0]


def with_bytes(value: Any) -> Any:
    """The parameters as a user of botocore writes them: blobs are bytes."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item) if key in ("bytes", "redactedContent") else with_bytes(item)
            for key, item in value.items()
        }
    return [with_bytes(item) for item in value] if isinstance(value, list) else value


def serialized(body: dict[str, Any], model: str) -> dict[str, Any]:
    """The request that botocore makes of these parameters; it raises for what the service's model does not have."""
    params = {"modelId": model, **with_bytes(copy.deepcopy(body))}
    report = ParamValidator().validate(params, CONVERSE.input_shape)
    assert not report.has_errors(), report.generate_report()
    return create_serializer("rest-json", True).serialize_to_request(params, CONVERSE)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "sampling": {"temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "top_k": 5},
    "in its words": {"inferenceConfig": {"topP": 0.5}, "additionalModelRequestFields": {"top_k": 5}},
    "a tool": {"tool_choice": "look"},
    "any tool": {"tool_choice": "required"},
    "no tool": {"tool_choice": "none"},
    "a schema": {"output_schema": SCHEMA},
    "thinking": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "a lifetime of the cache": {"cache": "1h"},
    "no cache": {"cache": False},
    "an effort": {"reasoning": "high"},
    "a guardrail": {
        "guardrailConfig": {"guardrailIdentifier": "abc123", "guardrailVersion": "1", "trace": "enabled"},
        "requestMetadata": {"team": "support"},
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "priority"},
    },
}


@pytest.mark.parametrize(
    "model", [CLAUDE, "anthropic.claude-opus-4-7-v1:0", "amazon.nova-pro-v1:0", "meta.llama4-scout-17b-instruct-v1:0"]
)
@pytest.mark.parametrize("case", CASES)
async def test_a_request_is_the_one_that_botocore_makes(model: str, case: str) -> None:
    request = await sent(f"bedrock:{model}", params=CASES[case])

    body = json.loads(request.body)
    theirs = serialized(body, model)

    assert json.loads(theirs["body"]) == body
    assert request.url == "https://bedrock-runtime.eu-central-1.amazonaws.com" + theirs["url_path"]


async def test_an_unknown_field_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="Unknown parameter"):
        serialized({**json.loads((await sent()).body), "stream": True}, CLAUDE)


async def test_what_a_request_says() -> None:
    body = json.loads((await sent(params={"thinking": {"type": "enabled", "budget_tokens": 1024}})).body)

    user, assistant, results = (message["content"] for message in body["messages"])
    assert [next(iter(block)) for block in user] == ["image", "text", "document", "cachePoint"]
    assert [next(iter(block)) for block in assistant] == ["reasoningContent"] * 2 + ["text", "toolUse"]
    assert assistant[1]["reasoningContent"]["reasoningText"] == {"text": "Hm.", "signature": "c2ln"}
    assert results[0]["toolResult"]["status"] == "error"
    assert [next(iter(block)) for block in results[0]["toolResult"]["content"]] == ["text", "image", "document"]
    names = {user[2]["document"]["name"], results[0]["toolResult"]["content"][2]["document"]["name"]}
    assert names == {"document 1", "document 2"}
    assert body["system"] == [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]
    assert body["toolConfig"]["tools"][-1] == {"cachePoint": {"type": "default"}}
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 1024}}


async def test_without_tools_and_calls_there_is_no_tool_config() -> None:
    talk = [RequestMessage("user", (TextPart("Hi."),))]

    assert "toolConfig" not in json.loads((await sent(tools=[], messages=talk)).body)
    assert "toolConfig" not in json.loads((await sent(messages=talk, params={"tool_choice": "none"})).body)
    assert "toolConfig" in json.loads((await sent(params={"tool_choice": "none"})).body)  # its history has a call


# Addresses and credentials ------------------------------------------------------------------------------------------


def signature_of(request: HttpRequest, credentials: Credentials, region: str) -> str:
    """The authorization that botocore gives to a request with these headers."""
    dropped = ("authorization", "user-agent", "accept-encoding", "x-amz-date", "x-amz-security-token")
    headers = {name: value for name, value in request.headers.items() if name not in dropped}
    aws = AWSRequest("POST", request.url, headers=headers, data=request.body)
    aws.context["timestamp"] = request.headers["x-amz-date"]
    auth = SigV4Auth(credentials, "bedrock", region)
    auth._modify_request_before_signing(aws)
    text = auth.string_to_sign(aws, auth.canonical_request(aws))
    auth._inject_signature_to_request(aws, auth.signature(text, aws))
    return str(aws.headers["Authorization"])


@pytest.mark.parametrize("token", ["", "IQoJb3JpZ2luX2VjE"])
@pytest.mark.parametrize(
    "model", [CLAUDE, "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama3-1-8b-instruct-v1:0"]
)
async def test_a_signature_is_that_of_botocore(model: str, token: str) -> None:
    request = await sent(f"bedrock:{model}", environ={**ENVIRON, "AWS_SESSION_TOKEN": token})

    access_key, secret_key = KEYS.values()
    credentials = Credentials(access_key, secret_key, token or None)
    assert request.headers["authorization"] == signature_of(request, credentials, "eu-central-1")
    assert request.headers.get("x-amz-security-token", "") == token


@given(
    path=st.text(st.characters(codec="ascii", exclude_characters="?#\\"), max_size=20),
    body=st.binary(max_size=50),
    value=st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), max_size=20),
    secret=st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1, max_size=40),
    port=st.sampled_from(["", ":8443", ":443"]),
)
def test_any_request_is_signed_like_botocore(path: str, body: bytes, value: str, secret: str, port: str) -> None:
    url = f"https://example.com{port}/model/{quote(path, safe='') or 'm'}/converse-stream"
    if any(part in (".", "..") for part in url.split("/")):
        return  # get_model refuses such a name
    request = HttpRequest(url, {"content-type": "application/json", "x-extra": value}, body)

    signed = sign_request(request, AwsCredentials("AKID", secret, "t"), "bedrock", "us-east-1", NOW)

    assert signed.headers["authorization"] == signature_of(signed, Credentials("AKID", secret, "t"), "us-east-1")


async def test_with_an_api_key_nothing_is_signed() -> None:
    request = await sent(environ={**ENVIRON, **WITH_KEY})

    assert request.headers["authorization"] == "Bearer bedrock-api-key-abc"
    assert "x-amz-date" not in request.headers


async def test_credentials_go_to_aws_and_to_the_endpoint_of_its_own_variable_only() -> None:
    private = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "https://vpce-1.example/"}
    assert "Credential=AKIDEXAMPLE" in (await sent(environ={**ENVIRON, **private})).headers["authorization"]

    elsewhere = await sent(environ={**ENVIRON, **WITH_KEY}, base_url="https://elsewhere.example")

    assert elsewhere.url.startswith("https://elsewhere.example/model/")
    assert "authorization" not in elsewhere.headers
    assert "x-amz-security-token" not in elsewhere.headers


@pytest.mark.parametrize(
    ("environ", "says"),
    [({}, "AWS_REGION"), (KEYS, "AWS_REGION"), ({**KEYS, "AWS_REGION": "evil.example/x"}, "region")],
)
def test_what_is_missing_is_said_at_once(environ: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        get_model(f"bedrock:{CLAUDE}", environ=environ)


async def test_other_credentials_are_those_that_botocore_finds(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "[team]\naws_access_key_id = AKFILE\naws_secret_access_key = secret-of-the-file\n"
    (tmp_path / "credentials").write_text(lines)
    for name in (*KEYS, "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "team")

    request = await sent(environ={"AWS_REGION": "us-east-1"})

    expected = signature_of(request, Credentials("AKFILE", "secret-of-the-file"), "us-east-1")
    assert request.headers["authorization"] == expected


async def test_an_error_does_not_repeat_the_secret() -> None:
    signer = AwsSigner(lambda: AwsCredentials("AKID", "a-secret-key", "a-session-token"), "us-east-1", lambda: NOW)
    await signer.sign(HttpRequest("https://example.com/", {}, b""))
    assert set(signer.secrets()) == {"a-secret-key", "a-session-token"}

    secret = KEYS["AWS_SECRET_ACCESS_KEY"]
    refusal = RecordedResponse([json.dumps({"message": f"no: {secret}"}).encode()], status=403)
    model = get_model(f"bedrock:{CLAUDE}", transport=ReplayTransport([refusal]), environ=ENVIRON)
    with pytest.raises(ModelError) as caught:
        async for _ in model.stream(ModelRequest("m", "", [RequestMessage("user", (TextPart("Hi."),))], [], {})):
            pass
    assert caught.value.kind == "key"
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind_of_error", "message", "kind"),
    [
        (400, "ValidationException", "The provided model identifier is invalid.", "unknown_model"),
        (400, "ValidationException", "Input is too long for requested model.", "context"),
        (400, "ServiceQuotaExceededException", "Your account has reached its limit.", "quota"),
        (403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", "key"),
        (403, "ExpiredTokenException", "The security token included in the request is expired", "key"),
        (404, "ResourceNotFoundException", "Could not resolve the foundation model.", "unknown_model"),
        (408, "ModelTimeoutException", "Model has timed out in processing the request.", "server"),
        (424, "ModelErrorException", "The system encountered an unexpected error.", "server"),
        (429, "ThrottlingException", "Too many tokens, please wait before trying again.", "rate"),
        (429, "ModelNotReadyException", "Model is not ready for inference.", "rate"),
        (500, "InternalServerException", "The system encountered an unexpected error.", "server"),
        (503, "ServiceUnavailableException", "Bedrock is unable to process your request.", "server"),
    ],
)
def test_a_refusal_has_its_kind(status: int, kind_of_error: str, message: str, kind: str) -> None:
    headers = {"x-amzn-errortype": f"{kind_of_error}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    names = {"vendor": "bedrock", "model": "m", "key": "k"}

    error = response_error(status, headers, json.dumps({"message": message}).encode(), names)

    assert (error.kind, message in str(error)) == (kind, True)
