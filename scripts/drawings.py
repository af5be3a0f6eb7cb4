"""Pictures of the concepts -> docs/assets/*.svg: boxes and arrows, light and dark, without a program to draw them.

`python scripts/drawings.py` writes them; with `--check` it only says which ones are out of date. What is drawn of a
machine is looked up in its table: a phase that is missing, or an arrow that the table does not have, is an error.
"""

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

from everturn.core.phases import TRANSITIONS, Phase

FOLDER = Path(__file__).parent.parent / "docs" / "assets"
STYLE = """\
text { font: 14px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
.small { font-size: 12px; fill: #59636e } .left { text-anchor: start } .mono { font-family: ui-monospace, monospace }
rect { fill: #ffffff; stroke: #8c959f; rx: 8 } .main { fill: #ddf4ff; stroke: #0969da }
.wait { fill: #fff8c5; stroke: #9a6700 } .good { fill: #dafbe1; stroke: #1a7f37 } .bad { fill: #ffebe9; stroke: #cf222e }
.area { fill: none; stroke: #d1d9e0; stroke-dasharray: 4 4 } path { fill: none; stroke: #59636e; stroke-width: 1.5 }
.head { fill: #59636e; stroke: none } .off { opacity: .45 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #9198a1 } rect { fill: #151b23; stroke: #656c76 }
  .main { fill: #121d2f; stroke: #4493f8 } .wait { fill: #272115; stroke: #d29922 }
  .good { fill: #12261e; stroke: #3fb950 } .bad { fill: #25171c; stroke: #f85149 }
  .area { fill: none; stroke: #3d444d } path { stroke: #9198a1 } .head { fill: #9198a1; stroke: none }
}"""


class Drawing:
    """A picture that is added to."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size, self._title, self._pieces = (width, height), title, list[str]()

    def box(self, x: int, y: int, width: int, height: int, *lines: str, kind: str = "") -> None:
        """A box around its middle, with lines in it; all but the first are small."""
        self._pieces.append(
            f'<rect class="{kind}" x="{x - width // 2}" y="{y - height // 2}" width="{width}" height="{height}"/>'
        )
        first = y + 5 - 9 * (len(lines) - 1)
        for at, line in enumerate(lines):
            self.text(x, first + 18 * at, line, "small" if at else "")

    def text(self, x: int, y: int, text: str, kind: str = "small") -> None:
        """A line of text."""
        self._pieces.append(f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>')

    def area(self, x: int, y: int, width: int, height: int, name: str) -> None:
        """A dashed room with a name, by its upper left corner."""
        self._pieces.append(f'<rect class="area" x="{x}" y="{y}" width="{width}" height="{height}"/>')
        self.text(x + 10, y + 18, name, "small left")

    def arrow(self, *points: tuple[int, int], kind: str = "") -> None:
        """A line through points, with a head at its end."""
        way = " ".join(f"{'L' if at else 'M'}{x} {y}" for at, (x, y) in enumerate(points))
        self._pieces.append(f'<path class="{kind}" d="{way}"/>')
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        corners = f"{x},{y} {x - 9 * dx + 4 * dy},{y - 9 * dy + 4 * dx} {x - 9 * dx - 4 * dy},{y - 9 * dy - 4 * dx}"
        self._pieces.append(f'<polygon class="head {kind}" points="{corners}"/>')

    def svg(self) -> str:
        """All of it."""
        width, height = self._size
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        inside = [f"<title>{escape(self._title)}</title>", f"<style>{STYLE}</style>", *self._pieces]
        return "\n".join([head, *inside, "</svg>"]) + "\n"


def turn() -> str:
    """The phases of a turn."""
    drawing = Drawing(860, 300, "The phases of a turn, and what is done in each")
    places = {
        Phase.PREPARING: (110, 90, "prepare", ""),
        Phase.STREAMING: (310, 90, "request, stream", "main"),
        Phase.TOOL_CALL: (510, 90, "tools", "main"),
        Phase.WAITING: (510, 220, "holds no memory", "wait"),
        Phase.FINALIZING: (690, 90, "finalize", ""),
        Phase.COMPLETED: (690, 190, "", "good"),
        Phase.ERROR: (690, 230, "", "bad"),
        Phase.CANCELLED: (690, 270, "", ""),
    }
    arrows: list[tuple[Phase, Phase, Sequence[tuple[int, int]], str]] = [
        (Phase.PREPARING, Phase.STREAMING, [(180, 90), (235, 90)], ""),
        (Phase.STREAMING, Phase.TOOL_CALL, [(385, 80), (445, 80)], "calls"),
        (Phase.TOOL_CALL, Phase.STREAMING, [(445, 102), (385, 102)], "next step"),
        (Phase.TOOL_CALL, Phase.WAITING, [(490, 115), (490, 192)], ""),
        (Phase.WAITING, Phase.TOOL_CALL, [(530, 192), (530, 115)], ""),
        (Phase.TOOL_CALL, Phase.FINALIZING, [(575, 90), (625, 90)], ""),
        (Phase.STREAMING, Phase.FINALIZING, [(310, 65), (310, 35), (690, 35), (690, 65)], "the answer is complete"),
        (Phase.FINALIZING, Phase.COMPLETED, [(690, 115), (690, 172)], ""),
        (Phase.FINALIZING, Phase.ERROR, [(755, 90), (790, 90), (790, 230), (737, 230)], ""),
        (Phase.FINALIZING, Phase.CANCELLED, [(755, 90), (790, 90), (790, 270), (737, 270)], ""),
    ]
    assert set(places) == set(Phase) - {Phase.IDLE}, "a phase is not drawn"
    for phase, (x, y, note, kind) in places.items():
        is_end = phase.is_terminal
        size = (130 if phase is not Phase.WAITING else 190, 50) if not is_end else (92, 34)
        drawing.box(x, y, *size, phase.value, *([note] if note else []), kind=kind)
    for start, to, points, label in arrows:
        leads = {
            one for target in TRANSITIONS[start].values() for one in ([target] if isinstance(target, str) else target)
        }
        assert to in leads, f"nothing leads from {start} to {to}"
        drawing.arrow(*points)
        if label:
            drawing.text((points[0][0] + points[-1][0]) // 2, points[0][1] + (16 if "next" in label else -8), label)
    drawing.text(425, 155, "a person is asked", "small")
    drawing.text(595, 155, "answered, any day", "small")
    return drawing.svg()


def log() -> str:
    """What the log is between."""
    drawing = Drawing(860, 330, "Commands come in at the door, one driver appends, many readers follow")
    drawing.box(90, 70, 140, 56, "a face", "send, answer, cancel")
    drawing.arrow((160, 70), (204, 70))
    drawing.box(285, 70, 160, 56, "the door", "checked, kept, then yes", kind="wait")
    drawing.arrow((365, 70), (415, 70))
    drawing.box(480, 70, 130, 56, "the inbox", "admitted, not done")
    drawing.arrow((545, 70), (625, 70))
    drawing.area(620, 20, 220, 210, "one driver, any process")
    drawing.box(730, 70, 190, 50, "fold(log) = state", "pure", kind="main")
    drawing.arrow((730, 95), (730, 117))
    drawing.box(730, 142, 190, 50, "decide(state) = action", "pure", kind="main")
    drawing.arrow((730, 167), (730, 185))
    drawing.box(730, 205, 190, 36, "write down, then do")
    drawing.arrow((635, 205), (560, 205), (560, 265))
    drawing.text(440, 222, "append(session, after, events)", "small mono")
    for at, name in enumerate(("TurnStarted", "StepStarted", "StepFinished", "CallStarted", "CallFinished", "…")):
        drawing.box(80 + 112 * at, 285, 108, 36, kind="good")
        drawing.text(80 + 112 * at, 290, name, "small mono")
    drawing.arrow((700, 285), (730, 285), (730, 232))
    drawing.text(790, 275, "after a crash:", "small")
    drawing.text(790, 292, "the same way", "small")
    drawing.arrow((90, 265), (90, 100))
    drawing.text(175, 165, "read from any position,", "small")
    drawing.text(175, 183, "on any node", "small")
    return drawing.svg()


def gate() -> str:
    """The way of a call that asks."""
    drawing = Drawing(860, 300, "A call that asks: what is written down, and what an answer has to pass")
    drawing.box(90, 60, 140, 50, "the model calls", "send_mail(to, text)")
    drawing.arrow((160, 60), (205, 60))
    drawing.box(275, 60, 140, 50, "rules judge it", "allow, ask or deny")
    drawing.arrow((345, 60), (400, 60))
    drawing.text(372, 50, "ask")
    drawing.box(490, 60, 180, 70, "GateOpened", "a row: arguments, hash,", "expiry, what always stores", kind="wait")
    drawing.arrow((480, 95), (480, 137))
    drawing.box(480, 165, 170, 56, "people, on any device", "shown the very bytes")
    drawing.arrow((565, 165), (620, 165))
    drawing.area(620, 100, 220, 130, "the door")
    for at, line in enumerate(
        ("the hash of what was shown", "open, and not expired", "asked once, answered once", "a person who may")
    ):
        drawing.text(640, 140 + 22 * at, "✓ " + line, "small left")
    drawing.arrow((730, 230), (730, 268), (565, 268))
    drawing.box(480, 268, 170, 40, "GateResolved", kind="wait")
    drawing.arrow((395, 268), (345, 268))
    drawing.box(245, 268, 200, 40, "PermissionDecided, CallStarted", kind="main")
    drawing.arrow((145, 268), (125, 268))
    drawing.box(80, 268, 90, 40, "it runs", kind="good")
    drawing.text(80, 240, "once, if it says so")
    drawing.arrow((275, 85), (275, 248))
    drawing.text(300, 160, "allow", "small left")
    return drawing.svg()


def tree() -> str:
    """A session with branches."""
    drawing = Drawing(860, 290, "A session is a tree: nothing in it moves, and one leaf is selected")
    rows = {
        "you": (90, 140, "What is on Friday?", "", "main"),
        "one": (290, 70, "An answer", "first version", ""),
        "two": (290, 210, "Another answer", "asked for again", "main"),
        "more": (490, 70, "And Saturday?", "", ""),
        "then": (490, 160, "Write to Ann", "edited afterwards", ""),
        "edit": (490, 250, "Write to Bob", "the new version", "main"),
        "sent": (700, 160, "Sent to Ann.", "stays as it was", ""),
        "leaf": (700, 250, "Sent to Bob.", "the selected leaf", "good"),
    }
    for start, to in (
        ("you", "one"),
        ("you", "two"),
        ("one", "more"),
        ("two", "then"),
        ("two", "edit"),
        ("then", "sent"),
        ("edit", "leaf"),
    ):
        (x0, y0, *_), (x, y, *_) = rows[start], rows[to]
        middle = (x0 + x) // 2
        drawing.arrow((x0 + 75, y0), (middle, y0), (middle, y), (x - 75, y)) if y0 != y else drawing.arrow(
            (x0 + 75, y), (x - 75, y)
        )
    for x, y, said, note, kind in rows.values():
        drawing.box(x, y, 150, 48, said, *([note] if note else []), kind=kind)
    return drawing.svg()


DRAWINGS = {"turn.svg": turn, "log.svg": log, "gate.svg": gate, "tree.svg": tree}


def outdated(folder: Path) -> list[str]:
    """The pictures that are not there, or not what would be drawn now."""
    return [
        name
        for name, draw in DRAWINGS.items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != draw()
    ]


def main() -> int:
    """Write them, or check."""
    old = outdated(FOLDER)
    if "--check" in sys.argv[1:]:
        for name in old:
            print(f"docs/assets/{name} is out of date; run: python scripts/drawings.py", file=sys.stderr)
        return 1 if old else 0
    for name in old:
        (FOLDER / name).write_text(DRAWINGS[name](), encoding="utf-8")
        print(f"wrote docs/assets/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
