"""Seeded bugs where there is much: search, pages, totals and what is counted; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SIZE = "tests/stores/test_size.py::"
SQLITE = "tests/stores/test_sqlite.py::TestSqlite::"
PAGING = "tests/access/test_paging.py::"
FAMILIES = "tests/telemetry/test_metric_families.py::"

SIZE_MUTANTS = [
    Mutant(
        "a search of one tenant finds what another has written",
        "stores/sql/search.py",
        '_sqlite("AND l.tenant = ? ")',
        "_sqlite(\"AND ? != '' \")",
        f"{SIZE}test_what_is_found_for_a_tenant_is_its_own_although_another_has_written_the_word_more_often[sqlite]",
    ),
    Mutant(
        "the day on which a period begins counts whole",
        "stores/sql/usage.py",
        "first = math.ceil(min(since, LATEST_TIME) / DAY)",
        "first = math.floor(min(since, LATEST_TIME) / DAY)",
        f"{SQLITE}test_what_was_used_is_added_up_by_day_and_agent",
    ),
    Mutant(
        "of gates that were opened at once a page shows those before its place again",
        "stores/sql/statements/gates.py",
        "AND (g.opened > ?2 OR g.session > ?3 OR (g.session = ?3 AND g.gate > ?4))",
        "AND (g.opened > ?2 OR g.session >= ?3)",
        f"{SQLITE}test_pages_of_gates_go_from_the_oldest_to_the_newest_and_leave_none_out",
    ),
    Mutant(
        "a gate that was answered still waits",
        "stores/sql/statements/gates.py",
        "WHERE EXISTS (SELECT 1 FROM gates g WHERE g.session = b.id AND g.is_open = 1 AND g.resolution IS NULL)",
        "WHERE EXISTS (SELECT 1 FROM gates g WHERE g.session = b.id)",
        f"{SQLITE}test_sessions_in_which_nothing_is_asked_do_not_wait",
    ),
    Mutant(
        "a page of a branch ends with the message it comes before",
        "access/conversations/sessions.py",
        "path = path[:-1] if before is not None else path",
        "path = path",
        f"{PAGING}test_a_branch_comes_from_its_end_page_by_page",
    ),
    Mutant(
        "the inbox ends with its first page",
        "access/access.py",
        "return api.InboxView(gates=page.gates, awake=awake, next=page.next)",
        "return api.InboxView(gates=page.gates, awake=awake)",
        f"{PAGING}test_the_inbox_begins_with_a_page_and_goes_on_with_the_rest_session_by_session",
    ),
    Mutant(
        "a sub-agent run waits under its own name",
        "access/context/scope.py",
        "wanted = {info.parent for info in found.values() if info.parent} - known.keys()",
        "wanted = set[str]()",
        f"{PAGING}test_a_question_of_a_sub_turn_has_the_title_of_the_session_that_a_person_began",
    ),
    Mutant(
        "readers that do not keep up are not counted",
        "server/streams/registry.py",
        'if stream.end_reason == "slow":',
        'if stream.end_reason == "late":',
        f"{FAMILIES}test_every_family_moves_when_its_cause_happens",
    ),
    Mutant(
        "a store that is away is told to be there",
        "telemetry/service_gauges.py",
        'metrics.set("service_up", 0, "database")',
        'metrics.set("service_up", 1, "database")',
        f"{FAMILIES}test_every_family_moves_when_its_cause_happens",
    ),
    Mutant(
        "a credential that is refused is nothing to count",
        "server/app.py",
        'metrics.count("logins_total", carrier, "refused")',
        "pass",
        f"{FAMILIES}test_every_family_moves_when_its_cause_happens",
    ),
]
