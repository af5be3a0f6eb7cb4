"""Seeded bugs in what keeps long logs cheap: keys of events, the tree of rows, pages of turns; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTRACT = "tests/stores/test_sqlite.py::TestSqlite::"
ROWS = "tests/stores/test_long_logs.py::"
TAIL = "tests/access/test_log_tail.py::"
MERGED = f"{TAIL}test_a_client_that_loads_the_end_and_then_the_rest_has_what_the_whole_log_gives"

LONG_LOG_MUTANTS = [
    Mutant(
        "an event whose key begins like another's is found by that one",
        "stores/sql/queries.py",
        "entries if key is None else [entry for entry in entries if index_key(entry.event) == (index, key)]",
        "entries",
        f"{CONTRACT}test_events_are_found_by_their_keys",
    ),
    Mutant(
        "why a command was dropped is searched in the whole log",
        "base_app/readers.py",
        'await self._store.indexed_events(session, "command", key)',
        "[e for e in await self._store.events(session) if getattr(e.event, 'command', '') == key]",
        f"{ROWS}test_an_operation_reads_as_many_rows_of_a_long_log_as_of_a_short_one",
    ),
    Mutant(
        "the tree shows the messages of a running turn as they were added",
        "stores/sql/queries.py",
        "messages[name] = load_message(decompress_message(body)) if turn is None else unfinished[turn].messages[name]",
        "messages[name] = load_message(decompress_message(body))",
        f"{CONTRACT}test_the_tree_is_the_fold_of_the_log",
    ),
    Mutant(
        "a batch of a restore begins after a deletion that was none",
        "stores/sql/append.py",
        "if before and type(before[-1]) is MessageDeleted:",
        "if before:",
        f"{ROWS}test_a_long_log_is_restored_in_batches_and_is_what_it_was",
    ),
    Mutant(
        "a page of the log has the beginning of a turn only",
        "access/conversations/log_tail.py",
        "entries = await self._store.events(self._session, turn=turn)",
        "entries = (await self._store.events(self._session, turn=turn))[:9]",
        f"{TAIL}test_pages_have_whole_turns_and_add_up_to_the_log",
    ),
    Mutant(
        "the first page leaves out the end of an older branch",
        "access/conversations/log_tail.py",
        "            await page.add_turn(turn)\n        while",
        "            pass\n        while",
        f"{TAIL}test_the_first_page_has_the_end_of_the_selected_branch_however_old_it_is",
    ),
    Mutant(
        "an earlier page replaces what is loaded",
        "core/tree.py",
        "self.messages = {**earlier.messages, **self.messages}",
        "self.messages = dict(earlier.messages)",
        MERGED,
    ),
    Mutant(
        "a branch is read beyond its start",
        "running/branch.py",
        "                if not needed:\n",
        "                if False:\n",
        "tests/turn/test_branch.py::test_what_is_read_of_a_branch_does_not_grow_with_it",
    ),
]
