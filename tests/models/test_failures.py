"""What providers say when they refuse: who must act, whether again may help, and words that say what to do."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.chunks import CallChunk, FinishChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.failures import RETRYABLE, malformed_call, read_error, response_error, retry_after, stream_error
from everturn.models.http_model import HttpModel
from everturn.models.vendors import VENDORS
from everturn.transport.replay import RecordedResponse, ReplayTransport

NAMES = {"vendor": "acme", "model": "acme-1", "key": "ACME_API_KEY"}
TO_DO = {
    "key": "set ACME_API_KEY to a key that is valid there",
    "quota": "the account at acme has no credit left",
    "context": "the conversation is too long for acme-1: start a new one",
    "unknown_model": "acme does not know acme-1",
    "request": "check the message and the parameters that are set for",
    "rate": "the rate limit of acme is reached",
    "server": "acme reports a server error; try again later",
    "seal": "acme refused its own encrypted reasoning, also in a second request without it",
}


def openai(message: str, code: str | int | None = None, kind: str = "invalid_request_error") -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def anthropic(kind: str, message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"})


def google(status: int, message: str, name: str, *details: Mapping[str, object]) -> str:
    return json.dumps({"error": {"code": status, "message": message, "status": name, "details": list(details)}})


EXPIRED = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
NONE_LEFT = "Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-3-pro"
SOME_LEFT = "Quota exceeded for metric: generate_content_free_tier_requests, limit: 10, model: gemini-3-pro"
PAGE = "<html><head><title>502 Bad Gateway</title></head></html>"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        # OpenAI
        (401, openai("Incorrect API key provided: sk-ab***.", "invalid_api_key"), "key"),
        (403, openai("Country, region, or territory not supported", "unsupported_country_region_territory"), "key"),
        (429, openai("Rate limit reached for requests", "rate_limit_exceeded", "requests"), "rate"),
        (429, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "quota"),
        (404, openai("The model `x` does not exist", "model_not_found"), "unknown_model"),
        (400, openai("This model's maximum context length is 8192 tokens", "context_length_exceeded"), "context"),
        (400, openai("Unsupported parameter: 'max_tokens'", "unsupported_parameter"), "request"),
        (500, openai("The server had an error", None, "server_error"), "server"),
        (503, openai("The engine is currently overloaded, please try again later"), "server"),
        # Anthropic
        (401, anthropic("authentication_error", "invalid x-api-key"), "key"),
        (403, anthropic("permission_error", "not allowed"), "key"),
        (400, anthropic("invalid_request_error", "Your credit balance is too low"), "quota"),
        (400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "context"),
        (404, anthropic("not_found_error", "model: claude-9"), "unknown_model"),
        (413, anthropic("request_too_large", "Request exceeds the maximum size"), "request"),
        (429, anthropic("rate_limit_error", "This request would exceed your rate limit"), "rate"),
        (529, anthropic("overloaded_error", "Overloaded"), "server"),
        # Google
        (400, google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", EXPIRED), "key"),
        (400, google(400, "API key expired. Please renew the API key.", "INVALID_ARGUMENT", EXPIRED), "key"),
        (400, google(400, "API Key not found. Please pass a valid API key.", "INVALID_ARGUMENT", EXPIRED), "key"),
        (400, google(400, "reason: API_KEY_INVALID", "INVALID_ARGUMENT"), "key"),
        (403, google(403, "Method doesn't allow unregistered callers", "PERMISSION_DENIED"), "key"),
        (400, google(400, "Thought signature is not valid.", "INVALID_ARGUMENT"), "seal"),
        (400, google(400, "Function call is missing a thought_signature in functionCall parts.", "X"), "seal"),
        (429, google(429, NONE_LEFT, "RESOURCE_EXHAUSTED"), "quota"),
        (429, google(429, f"{NONE_LEFT}. Please retry in 37.2s.", "RESOURCE_EXHAUSTED", RETRY), "quota"),
        (429, google(429, SOME_LEFT, "RESOURCE_EXHAUSTED"), "rate"),
        (429, google(429, f"{SOME_LEFT}. Please retry in 37.2s.", "RESOURCE_EXHAUSTED", RETRY), "rate"),
        (503, google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"), "server"),
        (400, google(400, "The input token count exceeds the maximum number of tokens allowed", "X"), "context"),
        # Ollama
        (404, '{"error":"model \'qwen9\' not found, try pulling it first"}', "unknown_model"),
        (400, '{"error":"the prompt is longer than the context length currently available to the model"}', "context"),
        (503, '{"error":"server busy, please try again.  maximum pending requests exceeded"}', "server"),
        (500, '{"error":"llama runner process has terminated: signal: killed"}', "server"),
        # Others
        (402, '{"error":{"message":"Insufficient credits","code":402}}', "quota"),
        (
            402,
            '{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}',
            "quota",
        ),
        (429, '[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]', "rate"),
        (401, '{"message":"Unauthorized","request_id":"r"}', "key"),
        (422, '{"object":"error","message":{"detail":[{"msg":"no"}]},"type":"invalid_request_error"}', "request"),
        (
            404,
            '{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}',
            "unknown_model",
        ),
        (404, '{"error":"model \'x\' not found"}', "unknown_model"),
        (
            400,
            '{"error":{"code":400,"message":"the request exceeds the available context size","type":"e"}}',
            "context",
        ),
        (408, "", "server"),
        (503, "upstream connect error", "server"),
        (500, "", "server"),
        (418, "I am a teapot", "request"),
        (400, "[" * 10_000, "request"),
        (400, '{"error":null}', "request"),
        (400, "[]", "request"),
        (400, "\0\ud800"[:1], "request"),
        (*(400, '[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]', "key"),),
        (
            *(
                400,
                openai("Invalid schema for function 'billing_lookup': not an object", "invalid_function"),
                "request",
            ),
        ),
    ],
)
def test_a_refusal_says_who_must_act_and_what_to_do(status: int, body: str, kind: str) -> None:
    error = response_error(status, {}, body.encode(), NAMES)

    assert (error.kind, error.retryable) == (kind, kind in RETRYABLE)
    assert TO_DO[kind] in str(error)
    assert f"acme: HTTP {status}: " in str(error)


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/gemma3:4b does not support tools",
        "This model does not support function calling",
        "No endpoints found that support tool use",
        "tool use is not supported by this model",
        "tools param requires --jinja flag",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ],
)
@pytest.mark.parametrize("status", [400, 500])
def test_a_model_that_cannot_call_tools_can_be_told_of_them_in_words(message: str, status: int) -> None:
    error = response_error(status, {}, json.dumps({"error": message}).encode(), NAMES)

    assert (error.kind, error.retryable, error.refuses_tools) == ("request", False, True)
    assert message in str(error)
    assert 'acme-1 has no native tool calls; use prompted tool calling: params={"tool_format": "json"}' in str(error)


def test_not_every_refusal_that_speaks_of_tools_is_about_that() -> None:
    error = response_error(400, {}, openai("tools[0].name is too long; tool calls are supported").encode(), NAMES)

    assert error.kind == "request"
    assert not error.refuses_tools
    assert "tool_format" not in str(error)


def test_a_provider_keeps_its_own_words_but_not_all_of_them() -> None:
    assert "invalid x-api-key" in str(response_error(401, {}, anthropic("e", "invalid x-api-key").encode(), NAMES))
    for body in (openai("x" * 10_000), "x" * 10_000, openai("\ud800" * 10_000)):
        error = str(response_error(400, {}, body.encode("utf-8", "surrogatepass"), NAMES))
        assert len(error) < 700
        error.encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "to_do"),
    [
        (502, PAGE, "server", "a server or a proxy in front of acme reports an error; try again later"),
        (403, "<!DOCTYPE html><title>Access denied</title>", "key", "whether a proxy or a login page is in between"),
        (404, "<html><body><h1>Not\n Found</h1>", "request", "check the base URL, and whether a proxy"),
        (407, "<html></html>", "request", "set HTTPS_PROXY to http://user:password@host:port"),
        (404, '{"detail":"Not Found"}', "request", "acme has no such path: check the base URL"),
    ],
)
def test_what_is_not_the_api_says_so_and_what_to_check(status: int, body: str, kind: str, to_do: str) -> None:
    error = response_error(status, {}, body.encode(), NAMES)
    assert error.kind == kind
    assert to_do in str(error)
    assert "<" not in str(error), "markup tells nobody anything"


async def test_a_login_page_instead_of_a_stream_is_named_by_its_title() -> None:
    page = RecordedResponse([b"<!DOCTYPE html><html><head><title>Sign in</title>", b"</head>" + b"x" * 5_000])
    model = HttpModel("m", VENDORS["openai-chat"], ReplayTransport([page]), key="k")
    with pytest.raises(ModelError, match=r'sent the web page "Sign in" .that is not an answer of a model API'):
        async for _ in model.stream(ModelRequest("m", "", [], [], {})):
            pass


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_says_where_to(status: int) -> None:
    error = response_error(status, {"location": "https://elsewhere/v1"}, b"", NAMES)

    assert (error.kind, error.retryable) == ("request", False)
    assert (
        str(error)
        == "the server redirects to https://elsewhere/v1; Everturn does not follow redirects with a key, so change base_url"
    )


# In the middle of a stream --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "server"),
        ({"type": "rate_limit_error", "message": "slow down"}, "rate"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate"),
        ({"code": 429, "message": "slow down"}, "rate"),
        ({"code": 502, "message": "Provider returned error"}, "server"),
        ({"code": "502", "message": "Provider returned error"}, "server"),
        ({"code": "server_error", "message": "oh"}, "server"),
        ({"type": "invalid_request_error", "message": "no"}, "request"),
        ({"code": "context_length_exceeded", "message": "no"}, "context"),
        ({"code": "insufficient_quota", "message": "no"}, "quota"),
        ({"type": "authentication_error", "message": "no"}, "key"),
        ({"message": "Internal error, please try again"}, "server"),
        ("upstream timed out", "server"),
        ("nobody knows", "request"),
        ({}, "request"),
        (None, "request"),
        (["odd"], "request"),
        (
            {"type": "api_error", "message": "oh"},
            "server",
        ),
    ],
)
def test_an_error_in_the_middle_is_as_good_as_a_status(error: object, kind: str) -> None:
    model_error = stream_error(error, NAMES)

    assert (model_error.kind, model_error.retryable, model_error.retry_after) == (kind, kind in RETRYABLE, None)
    assert str(model_error).startswith("acme: the stream broke off: ")
    assert TO_DO[kind] in str(model_error)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["code", "type", "message", "error"]), inner)
    ),
    max_leaves=6,
)


@given(ANY_JSON)
def test_whatever_an_error_is_it_becomes_one(error: object) -> None:
    assert isinstance(stream_error(error, NAMES), ModelError)
    assert isinstance(response_error(400, {}, json.dumps(error).encode(), NAMES), ModelError)


@pytest.mark.parametrize("code", ["²", "7" * 5000, "\ud800"])
def test_a_code_may_be_any_text(code: str) -> None:
    str(stream_error({"code": code}, NAMES)).encode()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"error":{"code":"c","message":"m"}}', ("c", "m")),
        ('{"error":{"code":7,"type":"t","message":"m"}}', ("7", "m")),
        ('{"error":"m"}', ("", "m")),
        ('{"detail":"m"}', ("", "m")),
        ('{"message":"m"}', ("", "m")),
        ('[{"error":{"message":"m"}}]', ("", "m")),
        ("[]", ("", "")),
        ("7", ("", "")),
        ("<html>", ("", "")),
        ("", ("", "")),
    ],
)
def test_errors_come_in_many_shapes(body: str, found: tuple[str, str]) -> None:
    assert read_error(body.encode()) == found


# A call the provider could not read -----------------------------------------------------------------------------------

FAILED = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<f {>"}}


async def test_a_call_the_provider_could_not_read_is_a_call_that_fails() -> None:
    model = HttpModel(
        "m", VENDORS["groq"], ReplayTransport([RecordedResponse([json.dumps(FAILED).encode()], status=400)])
    )
    chunks = [chunk async for batch in model.stream(ModelRequest("m", "", [], [], {})) for chunk in batch]

    assert chunks == [CallChunk(0, "<f {>", "malformed_call"), FinishChunk("tool_calls", "tool_use_failed")]


UNREAD = """error parsing tool call: raw='{"q": 'it', err=x'}', err=invalid character '\\'' looking for a value"""


async def test_a_call_that_ollama_could_not_read_is_a_call_that_fails() -> None:
    model = HttpModel(
        "m",
        VENDORS["ollama"],
        ReplayTransport([RecordedResponse([json.dumps({"error": UNREAD}).encode()], status=500)]),
    )
    chunks = [chunk async for batch in model.stream(ModelRequest("m", "", [], [], {})) for chunk in batch]

    assert chunks[0] == CallChunk(0, """{"q": 'it', err=x'}""", "malformed_call")
    assert isinstance(chunks[1], FinishChunk)
    assert (len(chunks), chunks[1].reason) == (2, "tool_calls")


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("error parsing tool call: raw='{', err=unexpected end of JSON input", "{"),
        ("error parsing tool call: raw='', err=unexpected end of JSON input", ""),
        ("we had an error parsing tool call: raw='{', err=no", None),
        ("error parsing tool call", None),
    ],
)
def test_what_ollama_could_not_read_is_what_the_model_wrote(message: str, written: str | None) -> None:
    assert malformed_call(json.dumps({"error": message}).encode()) == written


def test_of_a_long_call_that_ollama_could_not_read_the_beginning_is_kept() -> None:
    message = """error parsing tool call: raw='{"text": \"""" + "x" * 9000
    found = malformed_call(json.dumps({"error": message}).encode())

    assert found is not None
    assert found.startswith('{"text": "xxx')


@pytest.mark.parametrize("body", [b"tool_use_failed", b'{"error":"tool_use_failed"}', b'{"tool_use_failed":{}}', b"{}"])
def test_another_refusal_is_no_call(body: bytes) -> None:
    assert malformed_call(body) is None


# How long to wait -----------------------------------------------------------------------------------------------------

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-7"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 01:00:30 +0100"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30"}, 30.0),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "1e999"}, float("inf")),  # more than anybody waits: see `RetryPolicy.max_retry_after`
        ({"retry-after": "Thu, 99 Jan 99999 00:00:30 GMT"}, None),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
    ],
)
def test_how_long_a_provider_asks_us_to_wait(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.text() | st.dates().map(lambda day: f"Mon, {day:%d %b %Y} 25:61:00 GMT"))
def test_whatever_a_header_says_is_no_crash(text: str) -> None:
    assert (retry_after({"retry-after": text}, NOW) or 0.0) >= 0.0
    assert (retry_after({"retry-after-ms": text}, NOW) or 0.0) >= 0.0


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, google(429, SOME_LEFT, "RESOURCE_EXHAUSTED", RETRY), 37.0),
        ({}, google(429, f"{SOME_LEFT}. Please retry in 37.2s.", "RESOURCE_EXHAUSTED", RETRY), 37.2),
        ({}, google(429, f"{SOME_LEFT}. Please retry in 250ms.", "RESOURCE_EXHAUSTED"), 0.25),
        ({}, google(429, "slow", "X", {"retryDelay": "0.5s"}), 0.5),
        ({}, google(429, "slow", "X", {"retryDelay": "soon"}), None),
        ({}, google(429, "slow", "X", {"retryDelay": "..s"}), None),
        ({}, google(429, "slow", "X", {"retryDelay": 37}), None),
        ({"retry-after": "7"}, google(429, "slow", "X", RETRY), 7.0),
        ({}, f"[{google(429, SOME_LEFT, 'RESOURCE_EXHAUSTED', RETRY)}]", 37.0),
    ],
)
def test_how_long_to_wait_is_said_in_the_body_too(headers: Mapping[str, str], body: str, seconds: float | None) -> None:
    error = response_error(429, headers, body.encode(), NAMES)

    assert (error.kind, error.retryable, error.retry_after) == ("rate", True, seconds)


def test_an_error_carries_what_the_header_asked() -> None:
    error = response_error(429, {"retry-after": "7"}, b"", NAMES)

    assert (error.kind, error.retryable, error.retry_after) == ("rate", True, 7.0)
