"""Seeded bugs in the terminal, in rules on a command line and in replays; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROWS = "tests/tui/test_gates_rows.py::"
STATE = "tests/tui/test_state.py::"
SCROLL = "tests/tui/test_scrollback.py::"
HOUSE = "tests/tui/test_local_server.py::"
SHORT = "tests/permissions/test_compact.py::"
FILES = "tests/testing/test_replay_files.py::"

FACES_MUTANTS = [
    Mutant(
        "what is taken out of a result is taken out once and stands elsewhere",
        "terminal/tui/gates/redaction.py",
        "start = self.text.find(secret, start + 1)",
        "start = -1",
        f"{ROWS}test_half_of_a_written_out_character_is_all_of_it",
    ),
    Mutant(
        "half of a character that is written out is left of it",
        "terminal/tui/gates/redaction.py",
        "places += [(index, index + 1)] * len(piece)",
        "places += [(index, index)] * (len(piece) - 1) + [(index, index + 1)]",
        f"{ROWS}test_half_of_a_written_out_character_is_all_of_it",
    ),
    Mutant(
        "what was seen of a step that begins again stays on the screen",
        "terminal/tui/state.py",
        "        self.live.pop(event.turn, None)\n        self.waits.pop(event.turn, None)\n        times =",
        "        self.waits.pop(event.turn, None)\n        times =",
        f"{STATE}test_what_was_seen_of_a_step_that_begins_again_is_dropped",
    ),
    Mutant(
        "a message that joined a turn still waits on the screen",
        "terminal/tui/state.py",
        "return [message for message in self.queued if message.message not in self.tree.messages]",
        "return list(self.queued)",
        f"{STATE}test_hidden_messages_are_not_shown_and_a_message_that_joined_waits_no_more",
    ),
    Mutant(
        "what a plugin kept out of the conversation is shown",
        "terminal/tui/state.py",
        "[message for message in self.upwards(leaf) if not message.hidden]",
        "list(self.upwards(leaf))",
        f"{STATE}test_hidden_messages_are_not_shown_and_a_message_that_joined_waits_no_more",
    ),
    Mutant(
        "the open end of an answer is not taken back before it is drawn again",
        "terminal/tui/scrollback.py",
        "self._out.write(UP_AND_CLEAR.format(self._tail))",
        "pass",
        f"{SCROLL}test_however_it_came_the_screen_shows_the_same[3]",
    ),
    Mutant(
        "a tail that has left the screen is drawn over",
        "terminal/tui/scrollback.py",
        "lines = lines[-(size.lines - 2) :]",
        "lines = lines[:]",
        f"{SCROLL}test_a_tail_that_is_taller_than_the_screen_is_not_drawn_over",
    ),
    Mutant(
        "whoever finds the port of a terminal's own server is let in",
        "cli/store/connection.py",
        "if cookie is None and compare_digest(",
        "if True or compare_digest(",
        f"{HOUSE}test_a_server_of_its_own_answers_and_lets_nobody_else_in",
    ),
    Mutant(
        "a rule that denies is given as one that allows",
        "permissions/rule_text.py",
        'if row_action in ("allow", "ask", "deny") and row_action != action:',
        "if False:",
        f"{SHORT}test_what_makes_no_sense_is_refused_with_a_hint",
    ),
    Mutant(
        "a second argument of a short rule is read as a part of the first pattern",
        "permissions/rule_text.py",
        "for pair in _NEXT.split(inside.strip()):",
        "for pair in [inside.strip()]:",
        f"{SHORT}test_short_forms_mean_what_they_say",
    ),
    Mutant(
        "a run whose reader is gone ends before its cancellation is handled",
        "cli/commands/run.py",
        "                    await self._place.wait_until_idle()\n",
        "                    pass\n",
        "tests/cli/test_run.py::test_a_cancellation_that_comes_after_the_end_of_its_turn_is_waited_for",
    ),
]
