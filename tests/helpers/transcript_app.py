"""A transcript alone on a screen, and sessions that are written by hand: what the tests of the conversation stand on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar, cast

from textual.app import App, ComposeResult

from everturn import api
from everturn.client import Server
from everturn.core.deltas import CallDelta, CallProgress, ReasoningDelta, TextDelta
from everturn.core.events import AnswerStarted, Event, LogEvent, StepFinished, StepStarted, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import Part, StreamedPart, TextPart
from everturn.terminal.tui.host import Language, Severity
from everturn.terminal.tui.session_follower import SessionFollower
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.themes import THEMES
from everturn.terminal.tui.transcript import Transcript

T = TypeVar("T")


class Stage(App[None]):
    """As much of an app as a transcript needs."""

    server = cast("Server", None)
    me = cast("api.Me", None)
    agents = api.AgentList(agents=[], models=[api.ModelView(name="m", badge="scripted", context=10_000)])
    follower: SessionFollower | None = None

    def __init__(self, state: SessionState | None = None, language: Language = "en", theme: str = "") -> None:
        super().__init__()
        for known_theme in THEMES:
            self.register_theme(known_theme)
        self.theme = theme or THEMES[0].name
        self.state, self.language = state or SessionState(), language
        self.inbox_gates: list[api.GateView] = []
        self.told: list[str] = []
        self.heard: list[Any] = []
        self.error: Exception | None = None

    def compose(self) -> ComposeResult:
        yield Transcript()

    def on_mount(self) -> None:
        self.transcript.show(self.state, None)
        self.transcript.focus()

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    def on_transcript_picked(self, event: Transcript.Picked) -> None:
        self.heard.append(("picked", event.message_id))

    def on_transcript_asked_gate(self, event: Transcript.AskedGate) -> None:
        self.heard.append(("gate", event.gate_id))

    async def open_session(self, session: str, leaf: str | None = None) -> None: ...

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        return await doing

    def show_message(self, text: str, severity: Severity = "information") -> None:
        self.told.append(text)


class Writing:
    """Writes a session, event by event, into a state."""

    def __init__(self, on_change: Callable[[set[str]], None] | None = None) -> None:
        self.state, self.seq = SessionState(), 0
        self.told = on_change

    def event(self, event: Event) -> None:
        self.seq += 1
        self._apply(api.StreamItem(seq=self.seq, event=cast("LogEvent", event)))

    def delta(self, delta: TextDelta | ReasoningDelta | CallDelta) -> None:
        self._apply(api.StreamItem(seq=self.seq, delta=delta))

    def progress(self, turn: str, call: str, text: str) -> None:
        self._apply(api.StreamItem(seq=self.seq, progress=CallProgress(turn, call, text)))

    def _apply(self, item: api.StreamItem) -> None:
        turn = self.state.apply(item)
        if self.told is not None:
            self.told({turn})

    def said(self, turn: str, text: str, parent: str | None = None, *more: Part) -> None:
        """A person says something, and a turn begins."""
        message = Message(f"{turn}-in", parent, "user", (TextPart(text), *more), turn=turn)
        self.event(TurnStarted(turn=turn, parent=parent, input=message, at=1.0))
        answer = Message(f"{turn}-out", message.id, "assistant", by="scripted", turn=turn)
        self.event(AnswerStarted(turn=turn, message=answer))
        self.event(StepStarted(turn=turn, step=1, at=1.0))

    def answered(self, turn: str, parts: Iterable[StreamedPart], finish: Any = "stop") -> None:
        """The model has answered in one step."""
        self.event(StepFinished(turn=turn, step=1, parts=tuple(parts), finish=finish, at=3.0))


def text_delta(turn: str, at: int, text: str) -> TextDelta:
    return TextDelta(turn, 0, 0, at, text)
