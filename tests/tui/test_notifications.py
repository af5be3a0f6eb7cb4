"""A notification of the terminal: when an approval is needed, and nobody is looking."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def test_who_looks_elsewhere_is_told_that_an_approval_is_needed(rig: Rig, monkeypatch: Any) -> None:
    async with person(rig) as user:
        written: list[str] = []
        monkeypatch.setattr(user.app._driver, "write", written.append)

        def count_notifications(text: str) -> int:
            return "".join(written).count(f"\x1b]9;{text}\x07")

        session = await user.say("mail")
        await user.allow("send_mail")
        await user.idle()
        assert count_notifications("Everturn needs your approval") == 0, "it has the focus"
        user.app.app_focus = False
        rig.say("mail", session)  # from elsewhere: a key would give this terminal the focus
        await user.gate("send_mail")
        await user.until(lambda: count_notifications("Everturn needs your approval") == 1, "the notification")
