"""Gates → a page with two buttons each, or JSON; and what was sent back → a dict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any, cast
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from everturn import Gate

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Inbox ({count})</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }}
section {{ border: 1px solid #8884; border-radius: .5rem; padding: 1rem; margin: 1rem 0; }}
pre {{ background: #8881; padding: .5rem; overflow: auto; white-space: pre-wrap; }}
button, input {{ font: inherit; padding: .3rem .8rem; }}
</style>
<h1>Inbox</h1>
{waiting}
"""
ONE = """<section>
<h2>{tool}</h2><p>for request <b>{session}</b>: {why}</p><pre>{arguments}</pre>
<form method="post" action="/inbox/{id}"><input type="hidden" name="hash" value="{hash}">
<button name="button" value="allow">Allow</button></form>
<form method="post" action="/inbox/{id}"><input type="hidden" name="hash" value="{hash}">
<input name="why" aria-label="why not"> <button name="button" value="deny">Deny</button></form>
</section>
"""


async def body_of(request: Request, is_form: bool = False) -> dict[str, Any]:
    """What was sent, as JSON; any other kind could be sent by whatever page somebody has open, so a form is only taken
    where it has to name a secret."""
    data, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0]
    if is_form and kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(data.decode(errors="replace")))
    try:
        body = json.loads(data) if kind == "application/json" else None
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "send a JSON object, as application/json")
    return cast("dict[str, Any]", body)


def as_json(gate: Gate) -> dict[str, Any]:
    """What a program needs in order to show a gate and to answer it."""
    return {
        "gate": gate.id,
        "request": gate.session,
        "tool": gate.tool,
        "arguments": json.loads(gate.arguments),
        "hash": gate.hash,
    }


def render(gates: Sequence[Gate]) -> str:
    """The page. Everything in it that a model or a colleague wrote is escaped."""
    waiting = [
        ONE.format(
            id=escape(gate.id),
            tool=escape(gate.tool),
            session=escape(gate.session),
            why=escape(gate.why),
            arguments=escape(json.dumps(json.loads(gate.arguments), indent=2)),
            hash=escape(gate.hash),
        )
        for gate in gates
    ]
    return PAGE.format(count=len(gates), waiting="".join(waiting) or "<p>Nothing waits.</p>")
