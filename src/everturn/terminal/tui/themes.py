"""Themes: our colour themes besides Textual's, and the CSS of the app.

Texts have a contrast of at least 4.5:1 to each background of their theme, borders 3:1 (tests/tui/test_contrast.py measures it)."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK, LIGHT, CONTRAST = "everturn-dark", "everturn-light", "everturn-contrast"

THEMES: Final = (
    Theme(
        name=DARK,
        primary="#7aa2c9",
        secondary="#8fa3b8",
        accent="#8fbf9f",
        warning="#d8b26a",
        error="#d98880",
        success="#8fbf9f",
        foreground="#d8dce2",
        background="#15181c",
        surface="#1a1e23",
        panel="#22272e",
        dark=True,
        variables={"block-cursor-text-style": "none", "text-muted": "#a3abb5", "text-disabled": "#868e98"},
    ),
    Theme(
        name=LIGHT,
        primary="#2f6690",
        secondary="#51667a",
        accent="#33704a",
        warning="#835c00",
        error="#a3362b",
        success="#33704a",
        foreground="#23282e",
        background="#fbfaf7",
        surface="#f4f2ed",
        panel="#e9e6df",
        dark=False,
        variables={"block-cursor-text-style": "none", "text-muted": "#525a63", "text-disabled": "#5f666e"},
    ),
    Theme(
        name=CONTRAST,
        primary="#ffffff",
        secondary="#ffffff",
        accent="#ffff00",
        warning="#ffff00",
        error="#ff8080",
        success="#80ff80",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#303030",
        dark=True,
        text_alpha=1.0,
        variables={"text-muted": "#ffffff", "text-disabled": "#ffffff"},
    ),
)
CSS: Final = """
* { scrollbar-color: $secondary 75%; scrollbar-color-hover: $primary; scrollbar-color-active: $primary;
    scrollbar-background: $background; scrollbar-background-hover: $background; scrollbar-background-active: $background;
    scrollbar-size-vertical: 1; link-style: none; link-color: $text; link-style-hover: bold;
    link-background-hover: $panel; link-color-hover: $text; }
ChatScreen { background: $background; }
ModalScreen { background: $background 70%; }
.line { height: 1; width: 1fr; padding: 0 1; }
.title { text-style: bold; color: $primary; height: auto; margin-bottom: 1; }
.keys { color: $text-muted; height: auto; margin-top: 1; }
.pane {
    width: 90%; max-width: 100; height: auto; max-height: 90%;
    background: $surface; border: round $secondary 75%; padding: 1 2;
}
.pane * { scrollbar-background: $surface; scrollbar-background-hover: $surface; scrollbar-background-active: $surface; }
.pane.tall { height: 90%; }
.pane.wide { width: 96%; max-width: 200; height: 90%; }
.pane.slim { max-width: 70; }
.list { height: auto; max-height: 1fr; background: $surface; border: none; padding: 0; }
.tall .list { height: 1fr; }
.list:focus { border: none; background-tint: $foreground 0%; }
.list > .option-list--option-highlighted { background: $primary 20%; color: $foreground; text-style: bold; }
.list > .option-list--separator { color: $secondary; }
.list > .option-list--option-hover { background: $panel; }
.search { border: none; border-bottom: solid $secondary 75%; background: $surface; height: 2; padding: 0; margin-bottom: 1; }
.search:focus { border: none; border-bottom: solid $primary; background: $surface; background-tint: $foreground 0%; }
ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
Toast { background: $panel; }
.-low .pane, .-low .pane.tall, .-low .pane.wide { width: 100%; height: 100%; max-height: 100%; padding: 0 1; }
.-low .title, .-low .search { margin-bottom: 0; }
.-low .keys { margin-top: 0; }
.-low .list { height: 1fr; }
Confirm.-low Horizontal { margin-top: 0; }
"""
