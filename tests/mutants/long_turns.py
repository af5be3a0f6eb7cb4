"""Seeded bugs in bounded branches and in snapshots of long turns; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BRANCH = "tests/turn/test_bounded_branch.py::"
SNAPSHOTS = "tests/stores/test_turn_snapshots.py::"
IGNORED = f"{SNAPSHOTS}test_a_snapshot_of_other_code_or_with_other_bytes_is_ignored_with_one_line_in_the_log"

LONG_TURN_MUTANTS = [
    Mutant(
        "a snapshot is used in spite of another fingerprint",
        "turn_snapshot.py",
        "if snapshot.fold != fold_fingerprint():",
        "if not snapshot.fold:",
        f"{IGNORED}[sqlite-code]",
    ),
    Mutant(
        "a snapshot with a changed byte is used",
        "turn_snapshot.py",
        "return data[_CHECKSUM:] if data[:_CHECKSUM] == _checksum(data[_CHECKSUM:], about) else None",
        "return data[_CHECKSUM:]",
        f"{SNAPSHOTS}test_no_changed_byte_of_a_snapshot_changes_the_state",
    ),
    Mutant(
        "a snapshot outlives its turn",
        "stores/sql/projections.py",
        "        rows.without_snapshot.append(event.turn)\n",
        "",
        f"{IGNORED}[sqlite-body]",
    ),
    Mutant(
        "a bounded branch forgets the untrusted mark of what is above it",
        "core/context/compaction_plan.py",
        'untrusted |= cast("SummaryPart", part).untrusted',
        "untrusted |= False",
        f"{BRANCH}test_marks_of_what_is_not_read_any_more_still_hold[1]",
    ),
    Mutant(
        "private values above a summary are not masked any more",
        "calls/private_values.py",
        "await load_results(run, with_private=True)",
        "await load_results(run)",
        f"{BRANCH}test_marks_of_what_is_not_read_any_more_still_hold[4]",
    ),
    Mutant(
        "a summary of a blocked turn bounds the branch",
        "running/active_turn.py",
        "if not summaries or any(message is summaries[0] for message in history):",
        "if True:",
        f"{BRANCH}test_a_summary_of_a_blocked_turn_has_replaced_nothing",
    ),
    Mutant(
        "late results above a summary are not reported",
        "running/active_turn.py",
        "self.older_late = await older.find_all(late - read)",
        "self.older_late = {}",
        f"{BRANCH}test_a_late_result_above_a_summary_is_reported_once_on_each_branch",
    ),
    Mutant(
        "what was learned about sizes above a summary is read from the branch",
        "core/context/context_size.py",
        "weight = next((size.weight for size in compaction.learned if size.model == model), 1.0)",
        "pass",
        f"{BRANCH}test_in_every_schedule_a_turn_does_the_same_as_with_the_whole_branch[0]",
    ),
    Mutant(
        "a turn reads its whole branch",
        "running/active_turn.py",
        "needed = None if message.id in ignored else needed_messages(message)",
        "needed = None",
        f"{BRANCH}test_what_a_turn_reads_does_not_grow_with_the_conversation",
    ),
]
