"""The tree: a turn completes its own messages; whatever stands beside or above them never changes."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.simulated_driver import Dice, Play

from everturn.core.events import (
    AnswerStarted,
    Event,
    InputRefused,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    StepFinished,
    StepStarted,
    TitleSet,
    TurnEvent,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import TextPart
from everturn.core.tree import MessageTree
from everturn.errors import UnknownMessage

dice = st.binary(min_size=150, max_size=500).map(Dice)  # enough for five turns


class Session:
    """Up to five turns in one session, two or more of them at once, with people who select and delete in between."""

    def __init__(self, dice: Dice) -> None:
        self.dice, self.tree = dice, MessageTree()
        self.plays: list[Play] = []
        self._running: dict[str, Iterator[TurnEvent]] = {}

    def events(self) -> Iterator[Event]:
        while len(self.plays) < 5 or self._running:
            event = self._next()
            if event is not None:
                self.tree.apply(event)
                yield event

    def _next(self) -> Event | None:
        action = self.dice.pick("on", "on", "on", "on", "on", "begin", "select", "delete")
        messages = [message for message in self.tree.messages if message not in self.tree.deleted]
        if len(self.plays) < 5 and (action == "begin" or not self._running):
            return self._begin(messages)
        if action == "select":
            return LeafSelected(message=self.dice.pick(None, *messages))
        if action == "delete" and (free := [message for message in messages if not self._is_written(message)]):
            return MessageDeleted(message=self.dice.pick(*free))
        turn = self.dice.pick(*self._running) if self._running else ""
        event = next(self._running.get(turn, iter(())), None)
        if event is None:
            self._running.pop(turn, None)
        return event

    def _begin(self, messages: list[str]) -> Event:
        """Start a turn anywhere: with a message of its own, or (a re-run) under one that is not still being written."""
        turn = f"turn{len(self.plays)}"
        still = [message for message in messages if not self._is_growing(message)]
        parent = self.dice.pick(*(reversed(still)), None)
        play = Play(self.dice, turn, parent, has_input=parent is None or self.dice.pick(True, False))
        self.plays.append(play)
        self._running[turn] = play.events()
        return next(self._running[turn])

    def _is_growing(self, message: str) -> bool:
        running = [play.state for play in self.plays if play.turn in self._running]
        return any(message in state.messages and message != state.input for state in running)

    def _is_written(self, message: str) -> bool:
        """Whether a turn is writing below; the driver refuses to delete there."""
        tips = [play.state.tip for play in self.plays if play.turn in self._running]
        return any(message == above.id for tip in tips for above in self.tree.path(tip))


def as_bytes(message: Message) -> bytes:
    return msgspec.json.encode(message)


@given(dice)
def test_an_event_changes_no_message_but_those_of_its_own_turn(dice: Dice):
    session, before = Session(dice), dict[str, Message]()
    for event in session.events():
        turn = event.turn if isinstance(event, TurnEvent) else None
        for name, message in before.items():
            after = session.tree.messages[name]
            assert after.parent == message.parent
            if isinstance(event, InputRefused) and event.message == name and message.turn == turn:
                message = replace(message, refused=True)
            if message.turn != turn or message.role == "user":
                assert as_bytes(after) == as_bytes(message)
        before = dict(session.tree.messages)


@given(dice)
def test_turns_that_stream_at_once_write_only_into_their_own_branches(dice: Dice):
    session = Session(dice)
    for _ in session.events():
        for play in session.plays:
            own = {name: session.tree.messages[name] for name in play.state.messages}
            assert own == play.state.messages


@given(dice)
def test_every_path_leads_from_the_root_to_its_leaf_through_what_is_not_deleted(dice: Dice):
    session = Session(dice)
    for _ in session.events():
        tree = session.tree
        path = tree.path(tree.leaf)  # the selected branch is always there
        assert [message.parent for message in path] == [None, *(message.id for message in path)][: len(path)]
        assert path == [] if tree.leaf is None else path[-1].id == tree.leaf
        for name, message in tree.messages.items():
            if name not in tree.deleted:
                assert name in tree.versions(name)
                assert not {above.id for above in tree.path(name)} & tree.deleted
                assert {tree.messages[other].parent for other in tree.versions(name)} == {message.parent}


@given(dice)
def test_a_delete_hides_a_message_and_what_is_under_it_and_nothing_else(dice: Dice):
    session, before = Session(dice), set[str]()
    for event in session.events():
        hidden = session.tree.deleted - before
        if isinstance(event, MessageDeleted):
            assert hidden == set(session.tree.below(event.message)) - before
            assert session.tree.leaf not in session.tree.deleted
        else:
            assert not hidden
        before = set(session.tree.deleted)


# Selection, on one screen -------------------------------------------------------------------------------------------


def exchange(turn: str, parent: str | None, name: str) -> list[Event]:
    """A turn that says something and is answered."""
    text = (TextPart(f"{turn} says"),)
    return [
        TurnStarted(turn=turn, parent=parent, input=Message(name, parent, "user", text, turn=turn)),
        *answered(turn, name),
    ]


def answered(turn: str, parent: str) -> list[Event]:
    return [
        AnswerStarted(turn=turn, message=Message(f"{turn}.a", parent, "assistant", turn=turn)),
        StepStarted(turn=turn, step=1),
        StepFinished(turn=turn, step=1, parts=(TextPart(f"{turn} hears"),), finish="stop"),
    ]


def tree_of(*events: Event) -> MessageTree:
    tree = MessageTree()
    for event in events:
        tree.apply(event)
    return tree


def test_the_selected_branch_follows_its_turn():
    tree = tree_of(*exchange("one", None, "hi"), *exchange("two", "one.a", "and?"))

    assert tree.leaf == "two.a"
    assert [message.text for message in tree.path(tree.leaf)] == ["one says", "one hears", "two says", "two hears"]


def test_a_rerun_stands_beside_the_answer_and_is_selected():
    tree = tree_of(*exchange("one", None, "hi"), TurnStarted(turn="two", parent="hi"), *answered("two", "hi"))

    assert tree.versions("one.a") == tree.versions("two.a") == ["one.a", "two.a"]
    assert tree.leaf == "two.a"
    assert tree.get("one.a").text == "one hears"


def test_a_branch_nobody_looks_at_grows_without_taking_the_selection():
    tree = tree_of(*exchange("one", None, "hi"), TurnStarted(turn="two", parent="hi"), *answered("two", "hi"))
    tree.apply(LeafSelected(message="one.a"))
    tree.apply(MessageAdded(turn="two", message=Message("note", "two.a", "notice", turn="two")))

    assert tree.leaf == "one.a"


def test_deleting_the_selected_branch_selects_what_it_stood_on():
    tree = tree_of(*exchange("one", None, "hi"), *exchange("two", "one.a", "and?"), MessageDeleted(message="and?"))

    assert tree.leaf == "one.a"
    with pytest.raises(UnknownMessage, match=r"two\.a"):
        tree.path("two.a")


def test_deleting_elsewhere_leaves_the_selection_alone():
    tree = tree_of(*exchange("one", None, "hi"), *exchange("two", "one.a", "and?"), *exchange("three", "one.a", "or?"))
    tree.apply(MessageDeleted(message="and?"))

    assert tree.leaf == "three.a"
    assert tree.versions("or?") == ["or?"]


def test_a_deleted_message_is_as_good_as_unknown():
    tree = tree_of(*exchange("one", None, "hi"), MessageDeleted(message="hi"))

    for name in ("hi", "one.a", "nobody"):
        with pytest.raises(UnknownMessage, match=name):
            tree.get(name)


def test_a_title_is_kept():
    assert tree_of(*exchange("one", None, "hi"), TitleSet(turn="one", title="Hi")).title == "Hi"
