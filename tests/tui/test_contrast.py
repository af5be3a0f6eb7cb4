"""Contrast of the themes: every text can be read and every border be seen, as WCAG 2.1 AA asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct
from textual.color import Color
from textual.theme import Theme

import everturn.terminal.tui
from everturn.terminal.tui.chat import ChatScreen
from everturn.terminal.tui.themes import DARK, LIGHT, THEMES
from tests.helpers.contrast import GRAPHICS, TEXT, contrast, poor_pairs
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import person

SOURCES: Final = Path(everturn.terminal.tui.__file__).parent
BACKGROUNDS: Final = ("$background", "$surface", "$panel")
RULE: Final = re.compile(r"[{;\"'(]\s*([a-z-]*)color: (\$[a-z0-9-]+(?: \d+%)?)")
BORDER: Final = re.compile(r"border[a-z-]*: [a-z]+ (\$[a-z0-9-]+(?: \d+%)?)")
FILL: Final = re.compile(r"background: (\$[a-z0-9-]+(?: \d+%)?)")
STYLED: Final = re.compile(r"\"(\$[a-z0-9-]+(?: \d+%)?)(?: bold| italic)*\"")
BLOCK: Final = re.compile(r"\{([^{}\"]*:[^{}\"]*)\}")
DECORATION: Final = {"$panel"}  # the frame of an input without the focus, and the line between two columns


class Use(Struct, frozen=True, order=True):
    """A colour of a text or a border, and the one behind it ("": any of the screen's)."""

    color: str
    behind: str = ""
    is_border: bool = False


def uses() -> Iterator[Use]:
    """Yield the colours that the terminal UI draws with: of its CSS, and of the texts that it styles."""
    for file in SOURCES.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for block in BLOCK.findall(text):
            fill = FILL.search(block)
            behind = fill[1] if fill is not None else ""
            yield from (Use(color, behind) for kind, color in RULE.findall("{" + block) if kind in ("", "link-"))
            yield from (Use(color, is_border=True) for color in BORDER.findall(block) if color not in DECORATION)
        yield from (Use(color) for color in STYLED.findall(text))
        for name, look in re.findall(r'"([a-z-]+)": "([^"]*color: [^"]*)"', text):  # a table of styles
            fill = FILL.search(look)
            for _, color in RULE.findall("{" + look):
                yield Use(color, fill[1] if fill is not None else "", is_border=name.endswith("-bar"))


def resolve(value: str, theme: Theme, behind: Color) -> Color:
    """The colour that a value such as `$primary 25%` has in front of another one."""
    name, _, share = value.partition(" ")
    known = theme.to_color_system().generate()[name.removeprefix("$")]
    if known.startswith("auto "):  # black or white, whichever is further from the background
        contrasting = behind.get_contrast_text(float(known[5:].rstrip("%")) / 100)
        return behind.blend(contrasting.with_alpha(1), contrasting.a)
    color = Color.parse(known)
    return behind.blend(color, float(share.rstrip("%")) / 100) if share else color


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_each_color_that_is_drawn_can_be_read_on_each_background_of_its_theme(theme: Theme) -> None:
    found = sorted(set(uses()))
    assert {Use("$text-muted"), Use("$foreground", "$warning 20%")} <= set(found)
    assert Use("$primary", is_border=True) in found
    poor: list[str] = []
    for use in found:
        for base in BACKGROUNDS[: 2 if use.is_border else 3]:
            behind = resolve(base, theme, Color(0, 0, 0))
            behind = resolve(use.behind, theme, behind) if use.behind else behind
            ratio = contrast(resolve(use.color, theme, behind), behind)
            if ratio < (GRAPHICS if use.is_border else TEXT):
                poor.append(f"{ratio:.2f}: {use.color} on {use.behind or base}{' (border)' * use.is_border}")
    assert not poor, "\n".join(poor)


def test_the_contrast_of_black_and_white_is_that_of_wcag() -> None:
    assert contrast(Color(0, 0, 0), Color(255, 255, 255)) == pytest.approx(21)
    assert contrast(Color.parse("#767676"), Color(255, 255, 255)) == pytest.approx(4.54, abs=0.01)


@pytest.mark.live
@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", [DARK, LIGHT])
async def test_what_is_drawn_on_the_screens_can_be_read(rig: Rig, theme: str) -> None:
    session = rig.say("mail pace 0")["session"]
    async with person(rig, session, size=(80, 24), theme=theme) as user:
        await user.gate("send_mail")
        assert poor_pairs(user.app) == []
        await user.press("escape")
        await user.closed()
        assert poor_pairs(user.app) == []
        for action in ("help", "sessions", "pick", "files", "inbox", "servers", "settings", "usage", "context"):
            await user.app.run_action(f"app.{action}")
            await user.until(lambda: not isinstance(user.app.screen, ChatScreen), action)
            await user.pilot.pause()
            assert (action, poor_pairs(user.app)) == (action, [])
            await user.press("escape")
            await user.closed()
