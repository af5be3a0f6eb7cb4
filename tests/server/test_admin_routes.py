"""The routes for what is set up: what comes in, what goes out, and that a page may only do what its login may."""

from __future__ import annotations

from everturn import api
from everturn.app import App
from everturn.models.scripted import ScriptedModel
from everturn.stores.memory import MemoryStore
from tests.helpers.server_app import ask, make, make_house, word
from tests.helpers.tools import pay


def runtime() -> App:
    return App(ScriptedModel("Hello."), tools=[pay], store=MemoryStore())


async def test_rules_and_what_they_come_to_are_asked_for_by_members() -> None:
    app = make(await make_house(runtime()))
    rules = await ask(app, "GET", "/api/rules?agent=assistant", word("member"))
    assert [tool["name"] for tool in rules.json["tools"]] == ["pay"]
    explained = await ask(app, "POST", "/api/explain", word("member"), json={"tool": "pay", "arguments": {"amount": 7}})
    assert (explained.status, explained.json["action"], explained.json["is_final"]) == (200, "ask", False)
    for body, status, code in (
        ({"tool": "play"}, 422, "unknown_tool"),
        ({"tool": "pay", "agent": "nobody"}, 422, "unknown_agent"),
        ({"tool": "pay", "session": "session_of_nobody"}, 404, "unknown_session"),
        ({"tool": "pay", "arguments": {"text": "x" * 200_000}}, 422, "unfit"),
        ({"tool": ""}, 422, "unfit"),
    ):
        refused = await ask(app, "POST", "/api/explain", word("member"), json=body)
        assert (refused.status, refused.code) == (status, code), body


async def test_without_servers_the_list_is_empty_and_nothing_can_be_trusted() -> None:
    app = make(await make_house(runtime()))
    assert (await ask(app, "GET", "/api/mcp", word("viewer"))).json == {"servers": []}
    for deed in ("trust", "login", "retry"):
        body = {"hash": "h"} if deed == "trust" else None
        refused = await ask(app, "POST", f"/api/mcp/files/{deed}", word("operator"), json=body)
        assert (refused.status, refused.code) == (404, "unknown_server")
        # People log in for themselves; the rest is for operators.
        by_owner = await ask(app, "POST", f"/api/mcp/files/{deed}", word("owner"), json=body)
        assert by_owner.status == (404 if deed == "login" else 403)


async def test_a_cookie_alone_revokes_and_trusts_nothing() -> None:
    app = make(await make_house(runtime()))
    for method, path in (("DELETE", "/api/grants/g"), ("POST", "/api/mcp/files/retry")):
        assert (await ask(app, method, path, cookie=word("operator"))).code == "csrf"


async def test_the_setup_is_for_operators() -> None:
    house = await make_house(runtime())

    async def survey(agent: str, model: str) -> api.SetupView:
        return api.SetupView(
            agent=agent, model=model, is_offline=False, file="/etc/x", has_file=True, has_agent=True, options=[]
        )

    house.setup_survey = survey
    app = make(house)
    assert (await ask(app, "GET", "/api/setup", word("operator"))).json["file"] == "/etc/x"
    assert (await ask(app, "GET", "/api/setup", word("owner"))).status == 403
