"""A branch of a session → its blocks. What has not changed is the same block, and need not be drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.asking import Gate
from everturn.core.messages import Message
from everturn.core.parts import FilePart, FilesPart, NoticePart, Part, ReasoningPart, StepPart, TextPart, ToolPart
from everturn.core.state import TurnState
from everturn.tui.drawing import cards, marks
from everturn.tui.drawing.cards import Card
from everturn.tui.drawing.ink import GUTTER, Line, under, wrap
from everturn.tui.drawing.markdown import draw as draw_text
from everturn.tui.drawing.paper import Paper
from everturn.tui.drawing.pieces import Piece, Pieces, pieces_of
from everturn.tui.state import Live, SessionState

Kind = Literal["said", "badge", "text", "thought", "call", "file", "step", "notice", "files", "foot", "gate", "queued"]
PROGRESS: Final = 50  # rows of it that a card may show
_TIGHT: Final = {
    ("call", "call"),
    ("text", "badge"),
    ("thought", "badge"),
    ("call", "badge"),
    ("files", "call"),
    ("queued", "queued"),
}
"""Which stands right under which; between all others is an empty line."""


class Block(Struct, frozen=True, eq=False):
    """Something that is drawn, pointed at, folded and copied as one."""

    id: str
    kind: Kind
    key: tuple[object, ...]  # what it is drawn from: where this is the same, so are the lines
    draw: Callable[[Paper], list[Line]]
    message: str = ""
    group: str = ""  # blocks that are copied and pointed at together
    source: str = ""  # what is copied
    gate: str = ""  # that can be answered here
    folds: bool = False
    is_open: bool = False  # unless somebody folds it
    ticks: bool = False  # says how long something takes
    files: FilesPart | None = None

    @property
    def name(self) -> str:
        """By which it is pointed at."""
        return self.group or self.id

    def guess(self, width: int) -> int:
        """How many lines it may have, before anybody has drawn it."""
        is_short = self.kind in ("thought", "notice", "step", "badge") and not self.is_open
        return (
            2
            if is_short
            else 2 + min(len(self.source), 4_000 if self.kind == "call" else 10**9) // max(width - GUTTER, 8)
        )


class Book:
    """Makes the blocks of a branch, and keeps those of messages that stay as they are."""

    def __init__(self, contexts: Mapping[str, int] | None = None) -> None:
        self.contexts = dict(contexts or {})  # model -> tokens that it can take at once
        self._kept: dict[str, tuple[tuple[object, ...], list[Block]]] = {}
        self._versions: dict[str, int] = {}
        self._texts: dict[str, tuple[Pieces, list[Block]]] = {}  # of what streams

    def touch(self, turns: Iterable[str]) -> None:
        """These turns are not what they were."""
        for turn in turns:
            self._versions[turn] = self._versions.get(turn, 0) + 1

    def blocks(self, state: SessionState, leaf: str | None = None) -> list[Block]:
        """The blocks of a branch (None: the selected one), with what waits below it."""
        found: list[Block] = []
        branch, by = state.branch(leaf), ""
        for message in branch:
            found += self._message(state, message, by)
            by = message.by if message.role == "assistant" and message.by else by
        found += self._begun(state, branch)
        if leaf is None or leaf == state.tree.leaf:
            for at, one in enumerate(state.waiting):
                draw = _bound(marks.queued, one, at == 0)
                found.append(Block(f"queued.{one.turn}", "queued", (one, at == 0), draw, source=one.text))
        return found

    def _message(self, state: SessionState, message: Message, by: str) -> list[Block]:
        turn = state.turns.get(message.turn)
        is_new = bool(message.by) and message.by != by
        now = (message, self._versions.get(message.turn, 0), is_new)
        kept = self._kept.get(message.id)
        if kept is not None and kept[0][0] is message and kept[0][1:] == now[1:]:
            return kept[1]
        made = list(_Writer(self, state, message, turn).blocks(is_new))
        made = _same(kept[1], made) if kept is not None else made
        if turn is not None and message.id == _last(state, turn):
            made += _foot(state, turn, self._versions.get(turn.id, 0), message.id)
        self._kept[message.id] = (now, made)
        return made

    def _begun(self, state: SessionState, branch: list[Message]) -> Iterator[Block]:
        """The foot of a turn that has no message here yet: another answer is about to be written."""
        last = branch[-1].id if branch else None
        for turn in state.turns.values():
            if not turn.phase.is_terminal and not turn.messages and turn.parent == last:
                yield from _foot(state, turn, self._versions.get(turn.id, 0), last or "")

    def texts(self, name: str, text: str, make: Callable[[int, Piece], Block], is_live: bool) -> list[Block]:
        """The blocks of a text: of one that streams, only what is new is read."""
        if not is_live and name not in self._texts:
            return [make(number, chunk) for number, chunk in enumerate(pieces_of(text))]
        cutter, finished = self._texts.setdefault(name, (Pieces(), []))
        rest = cutter.feed(text)
        finished += [make(at, cutter.finished[at]) for at in range(len(finished), len(cutter.finished))]
        if not is_live:
            del self._texts[name]
        return [*finished, *(make(len(finished), chunk) for chunk in rest)]


def _same(before: list[Block], now: list[Block]) -> list[Block]:
    """Blocks of which those that are as they were are the very same ones."""
    known = {block.id: block for block in before}
    return [old if (old := known.get(block.id)) is not None and _is_same(old, block) else block for block in now]


def _is_same(old: Block, new: Block) -> bool:
    return old is new or (old.key == new.key and (old.gate, old.ticks, old.folds) == (new.gate, new.ticks, new.folds))


def _last(state: SessionState, turn: TurnState) -> str:
    """The last message of a turn that is shown."""
    return next((one for one in reversed(turn.messages) if not state.tree.messages[one].hidden), "")


def _bound(draw: Callable[..., list[Line]], *given: object) -> Callable[[Paper], list[Line]]:
    return lambda paper: draw(*given, paper)


def _text(chunk: Piece, paper: Paper) -> list[Line]:
    return under(draw_text(chunk, paper.width - GUTTER))


def _file(part: FilePart, paper: Paper) -> list[Line]:
    return under([marks.file(part, paper.width - GUTTER, paper.words)])


def _question(gate: Gate, paper: Paper) -> list[Line]:
    room = paper.width - GUTTER
    lines = wrap([(gate.why or gate.tool or gate.kind, "strong")], room)
    return under([*lines, *wrap([(paper.words.open_gate, "ask")], room)], "?", "ask", "│")


def _foot(state: SessionState, turn: TurnState, version: int, message: str) -> Iterator[Block]:
    """Questions that belong to no card, and how the turn stands or ended."""
    for name, gate in turn.asked.items():
        if turn.is_asked(name) and gate.call not in turn.calls:
            yield Block(f"gate.{name}", "gate", (gate,), _bound(_question, gate), message, gate=name, source=gate.why)
    is_over = turn.phase.is_terminal
    if is_over and not marks.end(turn, state, Paper(80)):
        return
    draw = _bound(marks.end if is_over else marks.status, turn, state)
    ended = state.ends.get(turn.id)
    problem = getattr(ended, "problem", None)
    source = problem.text if problem is not None else ""
    yield Block(f"foot.{turn.id}", "foot", (version,), draw, message, source=source, ticks=not is_over)


def is_tight(before: Block | None, block: Block) -> bool:
    """Whether a block stands right under the one before it; else an empty line stands between them."""
    if before is None or block.kind == "step" or (block.kind, before.kind) in _TIGHT:
        return True
    return bool(block.group) and block.group == before.group


class _Writer:
    """The blocks of one message."""

    def __init__(self, book: Book, state: SessionState, message: Message, turn: TurnState | None) -> None:
        self.book, self.state, self.message, self.turn = book, state, message, turn
        self.steps = state.steps.get(message.turn, {})

    def blocks(self, is_new: bool) -> Iterator[Block]:
        message = self.message
        if message.role == "user":
            yield self._said()
            return
        if is_new and message.role == "assistant":
            yield self._block("by", "badge", (message.by,), _bound(marks.badge, message.by), source=message.by)
        for at, part in enumerate(message.parts):
            yield from self._part(at, part)
        if self._is_writing:
            for at, live in sorted(self.state.live.get(message.turn, {}).items()):
                yield from self._live(len(message.parts) + at, live)

    @property
    def _is_writing(self) -> bool:
        is_on = self.turn is not None and not self.turn.phase.is_terminal
        return is_on and self.state.tree.writing.get(self.message.turn) == self.message.id

    def _block(
        self, at: int | str, kind: Kind, key: tuple[object, ...], draw: Callable[[Paper], list[Line]], **more: object
    ) -> Block:
        block = Block(f"{self.message.id}.{at}", kind, (kind, *key), draw, self.message.id)
        return replace(block, **more) if more else block

    def _said(self) -> Block:
        message = self.message
        draw = _bound(marks.said, message)
        is_long = message.text.count("\n") > marks.LONG or len(message.text) > 20 * marks.LONG
        return self._block(0, "said", (message,), draw, source=message.text, folds=is_long)

    def _part(self, at: int, part: Part) -> Iterator[Block]:
        match part:
            case TextPart(text=text) if self.message.role == "notice":
                yield self._notice(at, NoticePart("", text))
            case TextPart(text=text):
                yield from self._texts(at, text, is_live=False)
            case ReasoningPart(text=text):
                yield self._thought(at, text, is_live=False)
            case ToolPart():
                if not part.parent:
                    yield from self._calls(at, part, 0)
            case FilePart():
                yield self._block(at, "file", (part,), _bound(_file, part), source=part.name)
            case StepPart():
                times, context = self.steps.get(part.step), self.book.contexts.get(self.message.by, 0)
                has_said = at > 0 and not isinstance(self.message.parts[at - 1], StepPart)
                key = (part, times and (times.began, times.ended, times.restarts, times.closing), context, has_said)
                yield self._block(at, "step", key, _bound(marks.step, part, times, context, has_said))
            case FilesPart():
                draw, more = _bound(marks.files, part), len(part.changes) > marks.NAMED
                source = "\n".join(change.path for change in part.changes)
                yield self._block(at, "files", (part,), draw, source=source, folds=more, files=part)
            case NoticePart():
                yield self._notice(at, part)

    def _notice(self, at: int, part: NoticePart) -> Block:
        draw = _bound(marks.notice, part, self.message.by)
        return self._block(at, "notice", (part,), draw, source=part.text, folds=True)

    def _thought(self, at: int, text: str, is_live: bool) -> Block:
        draw = _bound(marks.thought, text, is_live)
        return self._block(at, "thought", (text, is_live), draw, source=text, folds=not is_live and bool(text.strip()))

    def _texts(self, at: int, text: str, is_live: bool) -> list[Block]:
        open_step = self.turn.step.number if self.turn is not None and self.turn.step is not None else 0
        times = self.steps.get(open_step)
        name = f"{self.message.id}.{at}"

        def make(number: int, chunk: Piece) -> Block:
            draw, group = _bound(_text, chunk), f"{name}.code{chunk.first}" if chunk.kind == "code" else ""
            return self._block(f"{at}.{number}", "text", (chunk,), draw, source=chunk.source, group=group)

        # What was read of a step that began again is void.
        return self.book.texts(f"{name}.{times.restarts if times else 0}", text, make, is_live)

    def _live(self, at: int, live: Live) -> Iterator[Block]:
        if live.kind == "text":
            yield from self._texts(at, live.text, is_live=True)
        elif live.kind == "reasoning":
            yield self._thought(at, live.text, is_live=True)
        else:
            card = Card(ToolPart(live.call, live.name, live.text), is_live=True)
            yield self._block(at, "call", (card,), _bound(cards.draw, card), source=live.text)

    def _calls(self, at: int, part: ToolPart, depth: int) -> Iterator[Block]:
        """A call, and under it those that its tool made."""
        yield self._call(at, part, depth)
        made = enumerate(self.message.parts)
        for below, one in [(n, p) for n, p in made if isinstance(p, ToolPart) and p.parent == part.call]:
            yield from self._calls(below, one, depth + 1)

    def _call(self, at: int, part: ToolPart, depth: int) -> Block:
        state, turn = self.state, self.turn
        call = turn.calls.get(part.call) if turn is not None else None
        gates = [gate for gate in turn.asked.values() if gate.call == part.call] if turn is not None else []
        mine = [gate.id for gate in gates if turn is not None and not turn.phase.is_terminal and turn.is_asked(gate.id)]
        sessions = {session for session, _ in call.below.values()} if call is not None else set[str]()
        below = [one.gate.id for one in state.below if one.session in sessions]
        card = Card(
            part,
            judged=call.judged if call is not None else None,
            is_out=call is not None and call.is_out,
            has_below=bool(sessions),
            is_over=turn is not None and turn.phase.is_terminal,
            times=state.times.get(part.call, (0.0, 0.0)),
            progress=tuple(state.progress.get(part.call, ())[-PROGRESS:]),
            preview=next((gate.preview for gate in gates if gate.preview), ""),
            asks="gate" if mine else "below" if below else "",
            is_client=turn is not None and any(one.name == part.name for one in turn.options.clients),
            depth=depth,
        )
        return self._block(
            at,
            "call",
            (card,),
            _bound(cards.draw, card),
            source=part.output.text if part.output is not None else part.used or part.arguments,
            gate=(*mine, *below, "")[0],
            folds=True,
            ticks=part.state in ("running", "waiting"),
        )
