"""Provider errors: classifies an error response as a `ModelError` that says who must act, and whether a retry may help.

Providers agree on little but the status; the same status means different things at different vendors, so the text
decides where it can. The provider's own message is kept, shortened, because it is the best there is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from everturn.core.canonical_json import replace_surrogates
from everturn.errors import ModelError

EXCERPT = 500  # characters of a provider's message
CONTENT_FILTER = "content_filter"
RETRYABLE = frozenset({"rate", "server", "network", "stalled", "truncated"})

# Patterns as text: they are compiled, and kept by `re`, when a request has failed for the first time.
_NO_MONEY = r"(?i)insufficient[_ ](quota|balance|credit|funds)|credit balance|limit: 0\b"
_QUOTA = r"(?i)billing (details|hard limit|account)|check your plan|quota.{0,100}?(exceeded|plan)"
_UNREAD = "error parsing tool call: raw='"
_RETRY_DELAY = rb'"retryDelay"\s*:\s*"([\d.]+)s"'
_WAIT = r"(?i)(?:retry|try again) (?:in|after) ([\d.]+) ?(ms|s)"
_SEAL = r"(?i)encrypted[_ ]content|invalid `?signature|thought[_ ]signature|`?redacted_thinking`? block"
_BAD_KEY = r"(?i)API key (not valid|expired|not found)|API_KEY_INVALID"
_KEY = r"authentication|invalid_api_key|permission"
_SERVER = r"overloaded|api_error|server_error|ModelErrorException"
_NO_MODEL = r"model_not_found|model identifier is invalid"
_CONTEXT = (
    r"(?i)context[_ ](length|window|size|limit)|too many (input )?tokens|prompt is too long|maximum context|input is too long"
    r"|exceeds the (model's )?(context|maximum number of tokens|available context)"
)
_NO_TOOLS = (
    r"(?i)not support (tools|tool use|tool call|function call)|support tool use|tool use is not supp"
    r"|tools param requires --jinja|tool choice requires --enable-auto-tool-choice"  # llama.cpp and vLLM
)
_OVERLOADED = r"(?i)overloaded|try again|temporarily|timeout|timed out|unavailable|internal"
_PAGE = rb"(?i)\s*<(!doctype html|html|head)\b"
_TITLE = rb"(?is)<(title|h1)[^>]*>(.*?)</"
PAGE_ADVICE = (
    "that is not an answer of a model API: check the base URL, and whether a proxy or a login page is in between "
    "(HTTPS_PROXY, NO_PROXY)"
)
_ADVICE = {
    "key": "the server refused the key: set {key} to a key that is valid there",
    "no_key": "the server asks for a key, and none was sent: set {key} to one",
    "credentials": "the server refused the credentials: check them, and what they may do there",
    "quota": "the account at {vendor} has no credit left, or its plan allows no more",
    "context": "the conversation is too long for {model}: start a new one, drop files, or use a model with a larger context window",
    "unknown_model": "{vendor} does not know {model}, or this key may not use it: check the name",
    "request": "check the message and the parameters that are set for {model}",
    "seal": "{vendor} refused its own encrypted reasoning, also in a second request without it; start a new conversation",
    "tools": '{model} has no native tool calls; use prompted tool calling: params={{"tool_format": "json"}} (or xml, or blocks)',
    "rate": "the rate limit of {vendor} is reached, and retries failed; wait, then try again",
    "server": "{vendor} reports a server error; try again later",
    "page": PAGE_ADVICE,
    "page_of_server": "a server or a proxy in front of {vendor} reports an error; try again later, and check the base URL and HTTPS_PROXY",
    "proxy": "the proxy asks for a login: set HTTPS_PROXY to http://user:password@host:port",
    "path": "{vendor} has no such path: check the base URL, which ends with /v1 at most servers",
}


def response_error(status: int, headers: Mapping[str, str], body: bytes, names: Mapping[str, str]) -> ModelError:
    """Return the error for a status other than 200. `names` are those of key, vendor and model."""
    code, text = read_error(body)
    code = code or headers.get("x-amzn-errortype", "").partition(":")[0]
    page = html_page(body)
    message = text or page or replace_surrogates(body[:EXCERPT].decode("utf-8", "replace"))
    if 300 <= status < 400:
        where = replace_surrogates(headers.get("location", "elsewhere"))[:EXCERPT]
        return ModelError(
            f"the server redirects to {where}; Everturn does not follow redirects with a key, so change base_url",
            "request",
        )
    kind = _kind(status, code, message)
    wait = retry_after(headers)
    after = wait if wait is not None else _wait_from_message(message, body)
    return _error(kind, f"HTTP {status}", message, names, after, _advice_of_status(status, kind, bool(page)))


def html_page(body: bytes) -> str:
    """A name for a web page, which a proxy or another server sent instead of an answer; "" for anything else."""
    if re.match(_PAGE, body) is None:
        return ""
    title = re.search(_TITLE, body)
    words = "" if title is None else " ".join(title[2].decode("utf-8", "replace").split())
    return f'the web page "{replace_surrogates(words)[:100]}"' if words else "a web page"


def _advice_of_status(status: int, kind: str, is_page: bool) -> str:
    """The advice that a status asks for, whatever its text says; "": that of the kind."""
    if status == 407:
        return "proxy"
    if is_page:
        return "page_of_server" if kind == "server" else "page" if kind in ("key", "request", "unknown_model") else ""
    return "path" if status == 404 and kind == "request" else ""


def stream_error(error: object, names: Mapping[str, str]) -> ModelError:
    """Return the error for an error event in a stream that had begun with 200."""
    code, text = _fields(error)
    status = int(code) if len(code) == 3 and code.isascii() and code.isdigit() else 0
    kind = _kind(status, code, f"{code} {text}")
    if kind == "request" and not status and re.search(_OVERLOADED, f"{code} {text}"):
        kind = "server"
    message = text or code or "an error without a word"
    return _error(kind, "the stream broke off", message, names, _wait_from_message(message, b""))


def _wait_from_message(message: str, body: bytes) -> float | None:
    """Return how long to wait, from the message or from Google's `retryDelay`."""
    if (match := re.search(_WAIT, message)) is not None:
        return (_number(match[1].rstrip(".")) or 0.0) / (1000 if match[2].lower() == "ms" else 1)
    delay = re.search(_RETRY_DELAY, body)
    return _number(delay[1].decode()) if delay is not None else None


def read_error(body: bytes) -> tuple[str, str]:
    """Return the code and the message of an error, in any of the usual formats."""
    try:
        decoded: object = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return "", ""
    if isinstance(decoded, list) and decoded:  # Google
        decoded = cast("list[object]", decoded)[0]
    if isinstance(decoded, dict):
        fields = cast("dict[str, Any]", decoded)
        return _fields(fields.get("error") or fields.get("detail") or fields)
    return "", ""


def malformed_call(body: bytes) -> str | None:
    """Return what a model wrote, where its server refuses the whole answer because it cannot parse a call."""
    if b"error parsing tool call" in body:  # Ollama
        return unparsed_call(read_error(body)[1])
    if b"tool_use_failed" not in body:  # Groq
        return None
    try:
        error = msgspec.json.decode(body, type=dict[str, dict[str, Any]])["error"]
    except (ValueError, RecursionError, KeyError):
        return None
    return (
        replace_surrogates(str(error.get("failed_generation") or ""))
        if error.get("code") == "tool_use_failed"
        else None
    )


def is_filtered(body: bytes) -> bool:
    """Return whether a content filter stopped the prompt (Azure): an answer that was filtered, and not a wrong request."""
    return CONTENT_FILTER.encode() in body and CONTENT_FILTER in read_error(body)[0].split()


def unparsed_call(message: str) -> str | None:
    """Return what a model wrote, from an error message that a call could not be parsed (Ollama)."""
    if not message.startswith(_UNREAD):
        return None
    written = message.removeprefix(_UNREAD)
    head, mark, _ = written.rpartition("', err=")
    return replace_surrogates(head if mark else written)  # the end of the message may be cut off


def _fields(error: object) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "", replace_surrogates(str(error))[:EXCERPT] if error else ""
    fields = cast("dict[str, Any]", error)
    code = fields.get("code") or fields.get("type") or ""
    kind = fields.get("type") if isinstance(fields.get("type"), str) else ""
    text = fields.get("message") or fields.get("msg") or fields.get("detail") or ""
    words = replace_surrogates(text if isinstance(text, str) else str(text))[:EXCERPT]
    return replace_surrogates(f"{code}" if str(code).isdigit() or not kind else f"{code} {kind}"), words


def _kind(status: int, code: str, text: str) -> str:
    message = f"{code} {text}"
    if status == 429:  # providers also call a limit per minute a "quota"
        is_over = "limit: 0" in message or not re.search(_WAIT, message)  # waiting is useless where nothing is allowed
        return "quota" if re.search(_NO_MONEY, message) and is_over else "rate"
    if re.search(_SEAL, message):
        return "seal"
    if status == 402 or re.search(_NO_MONEY, message) or re.search(_QUOTA, message):
        return "quota"
    if "context_length" in code or re.search(_CONTEXT, message):
        return "context"
    if status in (401, 403) or re.search(_BAD_KEY, text) or re.search(_KEY, code):
        return "key"
    if re.search(_NO_MODEL, message) or (status == 404 and "model" in message.lower()):
        return "unknown_model"
    if "rate_limit" in code:
        return "rate"
    return "server" if status >= 500 or status == 408 or re.search(_SERVER, code) else "request"


def _error(
    kind: str, where: str, message: str, names: Mapping[str, str], after: float | None, advice_kind: str = ""
) -> ModelError:
    if refuses_tools := kind in ("request", "server") and re.search(_NO_TOOLS, message) is not None:
        kind = "request"  # also where a server calls it an error of its own: another try is refused, too
    if kind == "key" and not advice_kind:
        advice_kind = names.get("login", "key")
    advice = _ADVICE["tools" if refuses_tools else advice_kind or kind]
    text = f"{names['vendor']}: {where}: {message.strip()[:EXCERPT]} ({advice.format_map(names)})"
    return ModelError(text, kind, kind in RETRYABLE, after, refuses_tools=refuses_tools)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return how long the provider asks to wait: in milliseconds, in seconds, or until a date."""
    ms, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if ms is not None:
        return ms / 1000
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        until = parsedate_to_datetime(value)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
