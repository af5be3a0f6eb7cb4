"""Blocks of a conversation: a branch of a session as blocks. Unchanged blocks are reused, and not drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.calls import CallRecord
from everturn.core.continuation import join_continued, with_footnotes
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.parts import (
    ClearedPart,
    CompactionPart,
    ContextPart,
    FilePart,
    FilesPart,
    NoticePart,
    Part,
    ProviderToolPart,
    ReasoningPart,
    StepPart,
    SummaryPart,
    TextPart,
    ToolPart,
    provider_tool_note,
)
from everturn.core.state import TurnState
from everturn.core.todos import WRITE_TODOS
from everturn.terminal.tui.render import annotations, cards
from everturn.terminal.tui.render.annotations import TurnSummary
from everturn.terminal.tui.render.canvas import Canvas
from everturn.terminal.tui.render.cards import Card
from everturn.terminal.tui.render.markdown import draw_markdown as draw_text
from everturn.terminal.tui.render.markdown_split import MarkdownPiece, MarkdownSplitter, split_markdown
from everturn.terminal.tui.render.text import GUTTER, Line, add_gutter, wrap
from everturn.terminal.tui.state import SessionState, StreamingPart

Kind = Literal["said", "badge", "text", "thought", "call", "file", "step", "notice", "files", "foot", "gate", "queued"]
MAX_PROGRESS_ROWS: Final = 50  # progress rows that a card may show
_TIGHT: Final = {
    ("call", "call"),
    ("text", "badge"),
    ("thought", "badge"),
    ("call", "badge"),
    ("files", "call"),
    ("queued", "queued"),
}
"""Pairs of a block and the block above it without an empty line between them."""


class Block(Struct, frozen=True, eq=False):
    """A unit that is drawn, selected, folded and copied as a whole."""

    id: str
    kind: Kind
    key: tuple[object, ...]  # what it is drawn from: equal keys give equal lines
    draw: Callable[[Canvas], list[Line]]
    message: str = ""
    group: str = ""  # blocks that are copied and selected together
    source: str = ""  # the text to copy
    gate: str = ""  # the gate that can be answered here
    folds: bool = False
    is_open: bool = False  # unfolded by default
    ticks: bool = False  # shows a running time
    files: FilesPart | None = None
    is_compaction: bool = False  # it can be undone

    @property
    def name(self) -> str:
        """The name that selects it."""
        return self.group or self.id

    def estimate_height(self, width: int) -> int:
        """Estimate its number of lines before it is drawn."""
        is_short = self.kind in ("thought", "notice", "step", "badge") and not self.is_open
        return (
            2
            if is_short
            else 2 + min(len(self.source), 4_000 if self.kind == "call" else 10**9) // max(width - GUTTER, 8)
        )


class BlockList:
    """Makes the blocks of a branch, and reuses those of unchanged messages."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], list[Block]]] = {}
        self._versions: dict[str, int] = {}
        self._texts: dict[str, tuple[MarkdownSplitter, list[Block]]] = {}  # of streaming parts

    def touch(self, turns: Iterable[str]) -> None:
        """Mark these turns as changed."""
        for turn in turns:
            self._versions[turn] = self._versions.get(turn, 0) + 1

    def blocks(self, state: SessionState, leaf: str | None = None) -> list[Block]:
        """Return the blocks of a branch (None: the selected one), with the queued messages below it."""
        result: list[Block] = []
        branch, by = state.branch(leaf), ""
        for message in branch:
            result += self._message(state, message, by)
            by = _author(message) if message.role == "assistant" and message.by else by
        result += self._pending_turns(state, branch)
        if leaf is None or leaf == state.tree.leaf:
            for index, queued_message in enumerate(state.queued_messages):
                draw = _bound(annotations.draw_queued, queued_message, index == 0)
                result.append(
                    Block(
                        f"queued.{queued_message.turn}",
                        "queued",
                        (queued_message, index == 0),
                        draw,
                        source=queued_message.text,
                    )
                )
        return result

    def _message(self, state: SessionState, message: Message, by: str) -> list[Block]:
        turn = state.turns.get(message.turn)
        is_new = bool(message.by) and _author(message) != by
        key = (message, self._versions.get(message.turn, 0), is_new)
        cached = self._kept.get(message.id)
        if cached is not None and cached[0][0] is message and cached[0][1:] == key[1:]:
            return cached[1]
        new_blocks = list(_BlockWriter(self, state, message, turn).blocks(is_new))
        new_blocks = _same(cached[1], new_blocks) if cached is not None else new_blocks
        if turn is not None and message.id == _last(state, turn):
            new_blocks += _foot(state, turn, self._versions.get(turn.id, 0), message.id)
        self._kept[message.id] = (key, new_blocks)
        return new_blocks

    def _pending_turns(self, state: SessionState, branch: list[Message]) -> Iterator[Block]:
        """Return the footer of a turn that has no message here yet: another answer is about to be written."""
        last = branch[-1].id if branch else None
        for turn in state.turns.values():
            if not turn.phase.is_terminal and not turn.messages and turn.parent == last:
                yield from _foot(state, turn, self._versions.get(turn.id, 0), last or "")

    def texts(self, name: str, text: str, make: Callable[[int, MarkdownPiece], Block], is_live: bool) -> list[Block]:
        """Return the blocks of a text; of a streaming text, only the new part is parsed."""
        if not is_live and name not in self._texts:
            return [make(number, chunk) for number, chunk in enumerate(split_markdown(text))]
        cutter, finished = self._texts.setdefault(name, (MarkdownSplitter(), []))
        rest = cutter.feed(text)
        finished += [make(index, cutter.finished[index]) for index in range(len(finished), len(cutter.finished))]
        if not is_live:
            del self._texts[name]
        return [*finished, *(make(len(finished), chunk) for chunk in rest)]


def _same(before: list[Block], now: list[Block]) -> list[Block]:
    """Replace blocks that are unchanged by the very same objects as before."""
    known = {block.id: block for block in before}
    return [old if (old := known.get(block.id)) is not None and _is_same(old, block) else block for block in now]


def _is_same(old: Block, new: Block) -> bool:
    return old is new or (old.key == new.key and (old.gate, old.ticks, old.folds) == (new.gate, new.ticks, new.folds))


def _last(state: SessionState, turn: TurnState) -> str:
    """Return the last visible message of a turn."""
    return next((message for message in reversed(turn.messages) if not state.tree.messages[message].hidden), "")


def _bound(draw: Callable[..., list[Line]], *arguments: object) -> Callable[[Canvas], list[Line]]:
    return lambda canvas: draw(*arguments, canvas)


def _wait_label(call: CallRecord | None) -> str:
    """Return what a call says that it waits for; "" if it does not."""
    if call is None or call.suspended is None:
        return ""
    return next((label for name in call.suspended.waits if (label := call.waits[name].label)), "")


def _text(chunk: MarkdownPiece, canvas: Canvas) -> list[Line]:
    return add_gutter(draw_text(chunk, canvas.width - GUTTER))


def _file(part: FilePart, canvas: Canvas) -> list[Line]:
    return add_gutter([annotations.draw_file(part, canvas.width - GUTTER, canvas.texts)])


def _question(gate: Gate, is_shown: bool, canvas: Canvas) -> list[Line]:
    room = canvas.width - GUTTER
    lines = wrap([(gate.why or gate.tool or gate.kind, "strong")], room)
    text = canvas.texts.shown_gate if is_shown else canvas.texts.open_gate
    return add_gutter([*lines, *wrap([(text, "ask")], room)], "?", "ask", "│")


def _foot(state: SessionState, turn: TurnState, version: int, message: str) -> Iterator[Block]:
    """Return gates that belong to no card, and the status or the ending of the turn."""
    for name, gate in turn.gate_details.items():
        if turn.is_gate_open(name) and gate.call not in turn.calls:
            is_shown = state.shown_gate == name
            draw = _bound(_question, gate, is_shown)
            yield Block(f"gate.{name}", "gate", (gate, is_shown), draw, message, gate=name, source=gate.why)
    is_over = turn.phase.is_terminal
    if is_over and not annotations.draw_ending(turn, state, Canvas(80)):
        return
    draw = _bound(annotations.draw_ending if is_over else annotations.draw_status, turn, state)
    ended = state.ends.get(turn.id)
    problem = getattr(ended, "problem", None)
    source = problem.text if problem is not None else ""
    yield Block(f"foot.{turn.id}", "foot", (version,), draw, message, source=source, ticks=not is_over)


def is_tight(before: Block | None, block: Block) -> bool:
    """Return whether a block is right under the one before it; else there is an empty line between them."""
    if before is None or block.kind == "step" or (block.kind, before.kind) in _TIGHT:
        return True
    return bool(block.group) and block.group == before.group


def _author(message: Message) -> str:
    """The name over an answer: the model that wrote it, or all of them."""
    return ", ".join(message.models) or message.by


class _BlockWriter:
    """Makes the blocks of one message."""

    def __init__(self, block_list: BlockList, state: SessionState, message: Message, turn: TurnState | None) -> None:
        self.book, self.state, self.message, self.turn = block_list, state, message, turn
        self.steps = state.steps.get(message.turn, {})

    def blocks(self, is_new: bool) -> Iterator[Block]:
        message = self.message
        if message.role == "user":
            yield self._text_block()
            return
        if is_new and message.role == "assistant":
            author = _author(message)
            yield self._block("by", "badge", (author,), _bound(annotations.draw_badge, author), source=author)
        streaming = dict(sorted(self.state.live.get(message.turn, {}).items())) if self._is_writing else {}
        shown, into = join_continued(message.parts)
        following = next((index for index, live in streaming.items() if live.kind == "text"), -1) if into >= 0 else -1
        for index, part in enumerate(shown):
            if index == into and following >= 0 and isinstance(part, TextPart):
                yield from self._texts(index, part.text + streaming.pop(following).text, is_live=True)
            elif part is not None:
                yield from self._part(index, part)
        for index, live in streaming.items():
            yield from self._live(len(message.parts) + index, live)

    @property
    def _is_writing(self) -> bool:
        is_on = self.turn is not None and not self.turn.phase.is_terminal
        return is_on and self.state.tree.writing.get(self.message.turn) == self.message.id

    def _block(
        self,
        index: int | str,
        kind: Kind,
        key: tuple[object, ...],
        draw: Callable[[Canvas], list[Line]],
        **more: object,
    ) -> Block:
        block = Block(f"{self.message.id}.{index}", kind, (kind, *key), draw, self.message.id)
        return replace(block, **more) if more else block

    def _text_block(self) -> Block:
        message = self.message
        draw = _bound(annotations.draw_user_message, message)
        is_long = (
            message.text.count("\n") > annotations.MAX_FOLDED_LINES
            or len(message.text) > 20 * annotations.MAX_FOLDED_LINES
            or any(isinstance(part, ContextPart) for part in message.parts)
        )
        return self._block(0, "said", (message,), draw, source=message.text, folds=is_long)

    def _part(self, index: int, part: Part) -> Iterator[Block]:  # noqa: C901 - one branch for each kind of part
        match part:
            case TextPart(text=text) if self.message.role == "notice":
                yield self._notice(index, NoticePart("", text))
            case TextPart():
                yield from self._texts(index, with_footnotes(part) if part.citations else part.text, is_live=False)
            case ProviderToolPart():
                draw = _bound(annotations.draw_provider_tool, part)
                source = provider_tool_note(part)
                yield self._block(index, "notice", (part,), draw, source=source, folds=bool(part.text))
            case ReasoningPart(text=text):
                yield self._thought(index, text, is_live=False)
            case ToolPart():
                if not part.parent:
                    yield from self._calls(index, part, 0)
            case FilePart():
                yield self._block(index, "file", (part,), _bound(_file, part), source=part.name)
            case StepPart():
                times = self.steps.get(part.step)
                has_said = index > 0 and not isinstance(self.message.parts[index - 1], StepPart)
                summary = self._summary(part)
                key = (
                    part,
                    times and (times.began, times.ended, times.restarts, times.closing, times.retries),
                    has_said,
                    summary,
                )
                if annotations.is_step_drawn(part, times, has_said, summary):
                    yield self._block(index, "step", key, _bound(annotations.draw_step, part, times, has_said, summary))
            case FilesPart():
                draw, folds = (
                    _bound(annotations.draw_file_changes, part),
                    len(part.changes) > annotations.MAX_LISTED_FILES,
                )
                source = "\n".join(change.path for change in part.changes)
                yield self._block(index, "files", (part,), draw, source=source, folds=folds, files=part)
            case NoticePart():
                yield self._notice(index, part)
            case ContextPart():  # of a user message, which is one block
                pass
            case SummaryPart() | ClearedPart():
                yield self._compaction(index, part)

    def _summary(self, part: StepPart) -> TurnSummary | None:
        """What the answer took, for its last step; a turn that goes on has no last one yet."""
        parts = [step for step in self.message.parts if isinstance(step, StepPart)]
        if parts[-1] is not part or (self.turn is not None and not self.turn.phase.is_terminal):
            return None
        times = [known for step in parts if (known := self.steps.get(step.step)) is not None and known.began]
        seconds = max(known.ended for known in times) - min(known.began for known in times) if times else 0.0
        usage = parts[0].usage
        for step in parts[1:]:
            usage += step.usage
        return TurnSummary(len(parts), usage, seconds)

    def _notice(self, index: int, part: NoticePart) -> Block:
        draw = _bound(annotations.draw_notice, part, self.message.by)
        return self._block(index, "notice", (part,), draw, source=part.text, folds=True)

    def _compaction(self, index: int, part: CompactionPart) -> Block:
        source = part.text if isinstance(part, SummaryPart) else ""
        draw = _bound(annotations.draw_compaction, part)
        return self._block(index, "notice", (part,), draw, source=source, folds=bool(source), is_compaction=True)

    def _thought(self, index: int, text: str, is_live: bool) -> Block:
        draw = _bound(annotations.draw_reasoning, text, is_live)
        return self._block(
            index, "thought", (text, is_live), draw, source=text, folds=not is_live and bool(text.strip())
        )

    def _texts(self, index: int, text: str, is_live: bool) -> list[Block]:
        open_step = self.turn.step.number if self.turn is not None and self.turn.step is not None else 0
        times = self.steps.get(open_step)
        name = f"{self.message.id}.{index}"

        def make(number: int, chunk: MarkdownPiece) -> Block:
            draw, group = _bound(_text, chunk), f"{name}.code{chunk.first}" if chunk.kind == "code" else ""
            return self._block(f"{index}.{number}", "text", (chunk,), draw, source=chunk.source, group=group)

        # The parse state of a restarted step is invalid.
        return self.book.texts(f"{name}.{times.restarts if times else 0}", text, make, is_live)

    def _live(self, index: int, live: StreamingPart) -> Iterator[Block]:
        if live.kind == "text":
            yield from self._texts(index, live.text, is_live=True)
        elif live.kind == "reasoning":
            yield self._thought(index, live.text, is_live=True)
        else:
            card = Card(ToolPart(live.call, live.name, live.text), is_live=True)
            yield self._block(index, "call", (card,), _bound(cards.draw_card, card), source=live.text)

    def _calls(self, position: int, part: ToolPart, depth: int) -> Iterator[Block]:
        """Yield a call, and under it the calls that its tool made."""
        yield self._call(position, part, depth)
        parts = enumerate(self.message.parts)
        for index, child in [(n, p) for n, p in parts if isinstance(p, ToolPart) and p.parent == part.call]:
            yield from self._calls(index, child, depth + 1)

    def _has_later_todos(self, index: int) -> bool:
        later = self.message.parts[index + 1 :]
        return any(
            isinstance(part, ToolPart) and part.name == WRITE_TODOS and part.state == "completed" for part in later
        )

    def _call(self, index: int, part: ToolPart, depth: int) -> Block:
        state, turn = self.state, self.turn
        call = turn.calls.get(part.call) if turn is not None else None
        gates = [gate for gate in turn.gate_details.values() if gate.call == part.call] if turn is not None else []
        open_gates = [
            gate.id for gate in gates if turn is not None and not turn.phase.is_terminal and turn.is_gate_open(gate.id)
        ]
        sessions = {session for session, _ in call.children.values()} if call is not None else set[str]()
        subagent_gates = [item.gate.id for item in state.subagent_gates if item.session in sessions]
        card = Card(
            part,
            decision=call.decision if call is not None else None,
            is_detached=call is not None and call.is_still_running,
            has_subagents=bool(sessions),
            is_over=turn is not None and turn.phase.is_terminal,
            times=state.times.get(part.call, (0.0, 0.0)),
            progress=tuple(state.progress.get(part.call, ())[-MAX_PROGRESS_ROWS:]),
            preview=next((gate.preview for gate in gates if gate.preview), ""),
            asks="gate" if open_gates else "below" if subagent_gates else "",
            waits_for=_wait_label(call),
            is_shown=bool(state.shown_gate) and state.shown_gate == (*open_gates, *subagent_gates, "")[0],
            is_client=turn is not None and any(item.name == part.name for item in turn.options.clients),
            depth=depth,
            is_superseded=part.name == WRITE_TODOS and part.state == "completed" and self._has_later_todos(index),
        )
        return self._block(
            index,
            "call",
            (card,),
            _bound(cards.draw_card, card),
            source=part.output.text if part.output is not None else part.used or part.arguments,
            gate=(*open_gates, *subagent_gates, "")[0],
            folds=True,
            ticks=part.state in ("running", "waiting"),
        )
