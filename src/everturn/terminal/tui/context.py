"""Context screen: what fills the context window, as a bar and a table, with the sizes from which it is compacted."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer, Vertical
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from everturn.core.context.context_report import ContextReport
from everturn.localization import format_text
from everturn.terminal.text.compaction import format_tokens
from everturn.terminal.text.context import divide_bar, find_warning, percent
from everturn.terminal.text.screen import display_width, escape_prose
from everturn.terminal.tui.chat_host import ChatHost, get_chat_host
from everturn.terminal.tui.confirm import Confirm
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.session_follower import SessionFollower
from everturn.terminal.tui.texts.context import ContextTexts, get_context_texts

# Neighbours in the bar differ in their sign too: colour is never the only sign of a meaning.
SEGMENTS: Final = {
    "instructions": ("█", "$primary"),
    "tools": ("▓", "$secondary"),
    "skills": ("▒", "$accent"),
    "summary": ("█", "$warning"),
    "person": ("▓", "$success"),
    "answers": ("█", "$secondary"),
    "results": ("▒", "$primary"),
    "files": ("▓", "$warning"),
    "notices": ("▒", "$foreground"),
    "other": ("▞", "$foreground"),
}
FREE: Final = ("·", "$text-muted")
RESERVE: Final = ("░", "$text-muted")
CLEAR_MARK, SUMMARIZE_MARK, LIMIT_MARK = "△", "▲", "╵"
MIN_WIDTH, MAX_WIDTH = 20, 120  # columns of the bar
FRAME, LOW_FRAME = 8, 4  # lines of a pane around what scrolls: the border, the title, the keys
MIN_AIRY_HEIGHT = 32  # lines of a screen from which on there are empty lines between the parts
MIN_TALL_HEIGHT = 20  # lines of a screen from which on a pane has the larger frame


def draw_bar(report: ContextReport, width: int) -> Content:
    """Return the bar, and below it the marks of the thresholds."""
    total = max(report.window or report.limit, report.used) or 1
    reserve = max(report.window - max(report.limit, report.used), 0)
    free = max(total - report.used - reserve, 0)
    segments = [(part.tokens, *SEGMENTS[part.kind]) for part in report.parts]
    segments += [(free, *FREE), (reserve, *RESERVE)]
    columns = divide_bar([size for size, *_ in segments], total, width)
    bar = Content.assemble(
        *((sign * count, style) for (_, sign, style), count in zip(segments, columns, strict=True) if count)
    )
    marks = [" "] * width
    for at, mark in (
        (report.clear_at, CLEAR_MARK),
        (report.summarize_at, SUMMARIZE_MARK),
        (report.limit, LIMIT_MARK),
    ):
        if at:
            marks[min(at * width // total, width - 1)] = mark
    line = "".join(marks).rstrip()
    return Content("\n").join([bar, Content.styled(line, "$text-muted")]) if line else bar


def draw_legend(report: ContextReport, texts: ContextTexts) -> Content:
    """Return a table of what fills the window; without a known window nothing has a share."""
    total = max(report.window, report.limit)
    rows = [(*SEGMENTS[part.kind], texts.kinds[part.kind], part.tokens) for part in report.parts]
    if report.free is not None:
        rows.append((*FREE, texts.free, report.free))
        rows += [(*RESERVE, texts.reserve, report.window - report.limit)] if report.window > report.limit else []
    names = max((display_width(name) for _, _, name, _ in rows), default=0)
    numbers = max((len(f"{size:,}") for *_, size in rows), default=0)
    lines = [
        Content.assemble(
            (sign * 2, style),
            f"  {name}{' ' * (names - display_width(name))}  {size:>{numbers},}",
            (f"  {_share(size / total):>6}" if total else "", "$text-muted"),
        )
        for sign, style, name, size in rows
    ]
    return Content("\n").join(lines)


def _share(share: float) -> str:
    return f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:.0f} %"


def draw_facts(report: ContextReport, texts: ContextTexts) -> Content:
    """Return what is to be known besides: thresholds, policy, compactions."""
    lines: list[Content] = []
    if report.summarize_at:
        marks = [
            f"{CLEAR_MARK} {texts.clears.format(at=format_tokens(report.clear_at))}",
            f"{SUMMARIZE_MARK} {texts.summarises.format(at=format_tokens(report.summarize_at))}",
            f"{LIMIT_MARK} {texts.limit.format(at=format_tokens(report.limit))}",
        ]
        lines += [Content.styled(mark, "$text-muted") for mark in marks]
    if report.policy == "off":
        lines.append(Content.styled(texts.policy_off, "$warning"))
    elif report.policy != "auto":
        lines.append(Content.styled(texts.policy_last.format(policy=report.policy), "$text-muted"))
    if report.share is None:
        lines.append(Content.styled(texts.no_window, "$text-muted"))
    elif report.window == report.limit:
        lines.append(Content.styled(texts.learned, "$text-muted"))
    if report.compactions:
        lines.append(Content.styled(format_text(texts.compactions, count=report.compactions), "$text-muted"))
    if report.estimated:
        lines.append(Content.styled(texts.estimated, "$text-muted"))
    if report.paused:
        lines.append(Content.styled(texts.paused, "$warning"))
    if report.summarizing:
        lines.append(Content.styled(texts.summarizing, "$accent"))
    return Content("\n").join(lines)


def draw_head(report: ContextReport, texts: ContextTexts) -> Content:
    """Return the model, and how much of its window is used."""
    mark = "~" if report.estimated else ""
    text = texts.used_unknown if report.share is None else texts.used
    return Content(
        text.format(
            model=escape_prose(report.model),
            used=f"{mark}{report.used:,}",
            limit=f"{report.limit:,}",
            percent=percent(report.share or 0.0),
        )
    )


def warning_text(report: ContextReport | None, texts: ContextTexts) -> str:
    """Return the warning that the context is nearly full; "" if it is not."""
    kind = "" if report is None else find_warning(report)
    if report is None or report.share is None or not kind:
        return ""
    text = {"soon": texts.soon, "next": texts.next, "off": texts.off, "paused": texts.failing}[kind]
    return text.format(percent=percent(report.share), at=percent(report.summarize_at / report.limit + 1e-3))


class ContextScreen(ClosingScreen[bool], ModalScreen[bool]):
    """What fills the context window of the selected branch; the result says whether it is to be compacted."""

    DEFAULT_CSS = """
    ContextScreen { align: center middle; }
    ContextScreen ScrollableContainer { height: auto; }
    ContextScreen Static { width: 100%; height: auto; }
    ContextScreen #bar, ContextScreen #legend, ContextScreen #facts { margin-top: 1; }
    ContextScreen.compact #bar, ContextScreen.compact #legend, ContextScreen.compact #facts { margin-top: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(False)", "close"),
        Binding("c", "dismiss(True)", "compact"),
    ]

    def __init__(self, follower: SessionFollower) -> None:
        super().__init__()
        self._follower = follower

    def compose(self) -> ComposeResult:
        """The model, the bar, the table, and the facts."""
        texts = get_context_texts(get_chat_host(self).language)
        with Vertical(classes="pane"):
            yield Static(Content(texts.title), classes="title", markup=False)
            with ScrollableContainer():
                for name in ("head", "bar", "legend", "facts"):
                    yield Static(id=name, markup=False)
            yield KeyHints(texts.keys)

    async def on_mount(self) -> None:
        """Ask for the report again."""
        self.refresh_state()
        await self._follower.load_context()
        self.refresh_state()

    def on_resize(self, event: Resize) -> None:
        """Draw the bar for the new width; what does not fit scrolls, and the keys stay on the screen."""
        is_low = event.size.height < MIN_TALL_HEIGHT
        room = event.size.height - LOW_FRAME if is_low else event.size.height * 9 // 10 - FRAME
        self.query_one(ScrollableContainer).styles.max_height = max(room, 1)
        self.set_class(event.size.height < MIN_AIRY_HEIGHT, "compact")
        self.call_after_refresh(self.refresh_state)

    def refresh_state(self) -> None:
        """Draw the report again."""
        report, texts = self._follower.state.context, get_context_texts(get_chat_host(self).language)
        if not self.is_mounted or report is None:
            return
        room = self.query_one("#bar").container_size.width - 1  # of a scroll bar
        width = min(max(room, MIN_WIDTH), MAX_WIDTH)
        drawn = {
            "head": draw_head(report, texts),
            "bar": draw_bar(report, width),
            "legend": draw_legend(report, texts),
            "facts": draw_facts(report, texts),
        }
        for name, content in drawn.items():
            self.query_one(f"#{name}", Static).update(content)


def confirm_undo(host: ChatHost, follower: SessionFollower, message: str) -> None:
    """Ask whether a compaction is to be undone, and undo it.

    The last message of a branch is deleted. Otherwise the conversation goes on from before the compaction: to delete it
    would hide all that was said after it.
    """
    texts, state = get_context_texts(host.language), follower.state
    is_last = state.tree.leaf == message

    async def undo() -> None:
        if is_last:
            await follower.session.delete(message)
        else:
            await follower.session.select(state.tree.messages[message].parent)
        host.show_message(texts.undone)

    async def answered(agreed: bool | None) -> None:
        if agreed:
            await host.attempt(undo())

    host.push_screen(Confirm(texts.undo, texts.undo_what if is_last else texts.undo_branch), answered)
