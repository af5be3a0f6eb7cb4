"""Seeded bugs in backups and in the erasure of users; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BACKUP = "tests/stores/test_backup.py::"
ERASURE = "tests/stores/test_owner_erasure.py::"

OPERATION_MUTANTS = [
    Mutant(
        "pieces of erased sessions stay in the pages of a backup",
        "stores/backup/sqlite_backup.py",
        "        if has_erased:",
        "        if has_erased and not has_erased:",
        f"{BACKUP}test_nothing_of_an_erased_session_is_in_a_backup_that_was_taken_before_the_file_was_rewritten",
    ),
    Mutant(
        "a blob that was removed after the snapshot is called missing",
        "stores/backup/sqlite_backup.py",
        "            if not is_last:",
        "            if not is_last and is_last:",
        f"{BACKUP}test_blobs_that_are_removed_while_the_backup_is_taken_are_not_missing_from_it",
    ),
    Mutant(
        "a log with a gap is whole",
        "stores/backup/log_check.py",
        "        if first != last + 1 or seq <= last:",
        "        if seq < last:",
        f"{BACKUP}test_a_log_with_a_gap_is_found_although_every_file_is_as_it_was_written[sqlite]",
    ),
    Mutant(
        "what a user said in the sessions of others stays",
        "stores/sql/owner_erasure.py",
        "msgspec.json.encode(user)[1:-1]",
        'b"nobody"',
        f"{ERASURE}test_an_erased_user_leaves_none_of_their_text_and_others_keep_theirs[sqlite]",
    ),
    Mutant(
        "files of an erased user stay",
        "stores/sql/owner_erasure.py",
        "    for name in sorted(names):",
        "    for name in sorted(names)[:0]:",
        f"{ERASURE}test_an_erased_user_leaves_none_of_their_text_and_others_keep_theirs[sqlite]",
    ),
]
