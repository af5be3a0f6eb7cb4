"""Seeded bugs in memory and recall; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STORES, TOOLS = "tests/stores/test_user_memory.py::", "tests/tools_memory/test_memory.py::"
RECALL, CRASH = "tests/tools_memory/test_recall.py::", "tests/tools_memory/test_crash.py::"
PATHS = "tests/tools_memory/test_paths.py::"

MEMORY_MUTANTS = [
    Mutant(
        "the memory of another user of the tenant can be read",
        "stores/sql/user_memory.py",
        'f"SELECT {_INFO}, f.text FROM memory_files f WHERE f.tenant = ? AND f.owner = ? AND f.path = ?"',
        'f"SELECT {_INFO}, f.text FROM memory_files f WHERE f.tenant = ? AND ? IS NOT NULL AND f.path = ?"',
        f"{STORES}TestSqliteUserMemory::test_a_user_has_files_of_its_own",
    ),
    Mutant(
        "a tool reads the memory of the tenant",
        "calls/memory_files.py",
        'user_memory.file(*owner_of(run, "memory"), path)',
        'user_memory.file(owner_of(run, "memory")[0], "ada", path)',
        f"{TOOLS}test_another_session_of_the_user_reads_it_and_no_other_user_does",
    ),
    Mutant(
        "an insert is made twice after a crash",
        "stores/user_memory.py",
        "            self._receipts[origin.session, origin.key] = edit.receipt",
        "            pass",
        f"{CRASH}test_stopped_at_any_event_each_change_is_made_once",
    ),
    Mutant(
        "an insert is made twice in a database",
        "stores/sql/user_memory.py",
        "        if rows:\n            return msgspec.json.decode(rows[0][0], type=MemoryReceipt)\n",
        "",
        f"{STORES}TestSqliteUserMemory::test_a_call_that_is_run_again_changes_nothing",
    ),
    Mutant(
        "memory gets private values",
        "tools/memory_tools.py",
        '"echoes": True',
        '"echoes": False',
        f"{TOOLS}test_a_private_value_cannot_be_written",
    ),
    Mutant(
        "what an untrusted conversation wrote is trusted",
        "calls/memory_files.py",
        "marks=MemoryMarks(untrusted, sensitive),",
        "marks=MemoryMarks(False, sensitive),",
        f"{TOOLS}test_what_an_untrusted_conversation_wrote_is_untrusted_everywhere",
    ),
    Mutant(
        "a list of files has no marks",
        "tools/memory_tools.py",
        "untrusted=untrusted, sensitive=sensitive)",
        "sensitive=sensitive)",
        f"{TOOLS}test_the_egress_rule_asks_about_what_memory_holds",
    ),
    Mutant(
        "a private value comes back by recall",
        "calls/recall.py",
        "                    return recall_messages(path, session=session)",
        "                    parts = [part for other in path for part in other.parts]\n"
        "                    names = [getattr(getattr(part, 'output', None), 'private', '') for part in parts]\n"
        "                    raw = ''.join([(await store.blob(name)).decode() for name in names if name])\n"
        "                    found = recall_messages(path, session=session)\n"
        "                    return [RecalledMessage(m.message, m.role, m.text + raw, m.session, True, True) for m in found]",
        f"{RECALL}test_marks_survive_and_a_private_value_never_comes_back",
    ),
    Mutant(
        "a recalled message has no marks",
        "core/memory/recall.py",
        "RecalledMessage(message.id, message.role, text, session, untrusted, sensitive)",
        "RecalledMessage(message.id, message.role, text, session)",
        f"{RECALL}test_marks_survive_and_a_private_value_never_comes_back",
    ),
    Mutant(
        "a session of another user is recalled by its id",
        "calls/recall.py",
        "info.tenant != tenant or info.by != user or info.parent",
        "info.tenant != tenant or info.parent",
        f"{RECALL}test_other_sessions_are_the_users_own_and_never_another_users_or_tenants",
    ),
    Mutant(
        "a search finds sessions of other users",
        "stores/memory.py",
        "(by is None or (row.by == by and not row.parent))",
        "(by is None or not row.parent)",
        f"{RECALL}test_other_sessions_are_the_users_own_and_never_another_users_or_tenants",
    ),
    Mutant(
        "a sibling of the root is the root",
        "core/memory/user_memory.py",
        'text != MEMORY_ROOT and not text.startswith(f"{MEMORY_ROOT}/"):',
        "not text.startswith(MEMORY_ROOT):",
        f"{PATHS}test_a_hostile_path_is_refused",
    ),
    Mutant(
        "a change that was approved for another text is made",
        "tools/memory_tools.py",
        ".change(change, context.base_version)",
        ".change(change)",
        f"{TOOLS}test_a_person_is_shown_the_diff_and_what_changed_since_is_not_written",
    ),
]
