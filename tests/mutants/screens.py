"""Seeded bugs in titles, in what is said to have changed, and in what a browser is sent; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CUT = "tests/core/test_titles.py::test_a_title_is_the_text_on_one_line_cut_after_a_word"
FILES = "tests/core/test_titles.py::test_a_message_without_text_is_called_by_its_files"
WAITS = "tests/turn/test_titles.py::test_a_session_that_waits_for_a_person_has_its_title"
ADMITTED = "tests/access/test_titles.py::test_a_session_that_no_worker_has_picked_up_has_its_title"
EVERYWHERE = "tests/access/test_titles.py::test_what_waits_for_a_person_is_called_by_its_first_message_everywhere"
OTHER = "tests/core/test_canonical_json.py::test_texts_that_say_something_else_are_not_the_same"
USED = "tests/core/test_canonical_json.py::test_a_call_says_what_it_used_only_where_that_is_not_what_was_asked"
EARLY = "tests/tui/test_first_keys.py::"
PACKED = "tests/server/test_compression.py::"

SCREEN_MUTANTS = [
    Mutant(
        "a long line in a question is measured again for each piece of it",
        "terminal/text/visible_text.py",
        "while len(line) - at > room or display_width(line[at:]) > room:",
        "while display_width(line[at:]) > room:",
        "tests/security/test_terminal_gates.py::test_a_long_line_is_measured_once_and_not_again_for_each_piece",
    ),
    Mutant("a title is cut in the middle of a word", "core/titles.py", "    if space >= 0:\n", "    if False:\n", CUT),
    Mutant("a title that was cut does not say so", "core/titles.py", " + ELLIPSIS\n\n\ndef _is", "\n\n\ndef _is", CUT),
    Mutant("a letter loses its accent in a title", "core/titles.py", "_is_joined(text, at):", "False:", CUT),
    Mutant(
        "a title moves the cursor",
        "core/titles.py",
        "if char.isprintable() or char.isspace()",
        "if True or char.isspace()",
        CUT,
    ),
    Mutant(
        "a session that begins with a file has no title",
        "core/titles.py",
        "    if not text:\n",
        "    if False:\n",
        FILES,
    ),
    Mutant(
        "a session has no title while its first turn waits",
        "driver/commands.py",
        "self._ledger.stage([started, *title_event])",
        "self._ledger.stage([started])",
        WAITS,
    ),
    Mutant(
        "every message gives the session another title",
        "driver/commands.py",
        'derive_title(command.parts) if started.untitled and not is_checked else ""',
        "derive_title(command.parts)",
        "tests/turn/test_titles.py::test_the_title_is_written_with_the_first_turn_and_only_then",
    ),
    Mutant(
        "a session that no worker has picked up has no title",
        "access/conversations/titles.py",
        "    if info.title or not info.is_awake:\n",
        "    if True:\n",
        ADMITTED,
    ),
    Mutant(
        "what was found has no title",
        "access/conversations/session_search.py",
        'title=titles.get(session, "")',
        'title=""',
        EVERYWHERE,
    ),
    Mutant(
        "arguments are compared by their spelling",
        "core/tree.py",
        "is_same_value(event.arguments, part.arguments)",
        "event.arguments == part.arguments",
        USED,
    ),
    Mutant(
        "long numbers are the same when they are nearly so",
        "core/canonical_json.py",
        '("number", Decimal(text))',
        '("number", Decimal(float(text)))',
        OTHER,
    ),
    Mutant(
        "true is the number one",
        "core/canonical_json.py",
        'return ("number", Decimal(text))',
        "return Decimal(text)  # type: ignore",
        OTHER,
    ),
    Mutant(
        "a name that is there twice is there once",
        "core/canonical_json.py",
        "    if len(members) != len(pairs):\n",
        "    if False:\n",
        OTHER,
    ),
    Mutant(
        "an answer with a token is compressed",
        "server/compression.py",
        "or route.is_secret\n",
        "",
        f"{PACKED}test_what_is_short_was_changed_or_has_a_token_is_never_compressed",
    ),
    Mutant(
        "the answer that has the CSRF token is compressed",
        "server/routes/api.py",
        "answer=api.Me,\n        is_secret=True,",
        "answer=api.Me,",
        f"{PACKED}test_who_is_asking_has_a_token_and_is_never_compressed",
    ),
    Mutant(
        "JSON is compressed for who cannot read it",
        "server/compression.py",
        "    if not accepts_gzip(accepted):\n        return response\n",
        "",
        f"{PACKED}test_a_long_answer_is_compressed_for_who_accepts_it_and_plain_for_who_does_not",
    ),
    Mutant(
        "a program is told in HTML that nothing is there",
        "server/routes/public.py",
        " and not f\"{scope['path']}/\".startswith(API_PREFIXES)",
        "",
        f"{PACKED}test_programs_are_told_in_json_whatever_they_accept",
    ),
    Mutant(
        "keys that come before the box has the focus are lost",
        "terminal/tui/app_base.py",
        "if self._buffered_keys is not None and isinstance(event,",
        "if False and isinstance(event,",
        f"{EARLY}test_keys_that_come_before_the_box_has_the_focus_wait_for_it",
    ),
    Mutant(
        "a session that opens empties the box of what was typed for it",
        "terminal/tui/app_base.py",
        "        if not keeps_text:\n",
        "        if True:\n",
        f"{EARLY}test_a_session_that_opens_leaves_in_the_box_what_was_typed_for_it",
    ),
    Mutant(
        "keys typed after Enter are lost with the message that was sent",
        "terminal/tui/composer.py",
        '        self.load_text("")  # at once',
        "        pass  # at once",
        "tests/tui/test_composer.py::test_keys_that_come_at_once_belong_to_the_message_that_they_were_typed_for",
    ),
]
