"""Seeded bugs in what keeps hostile text from stopping a server; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BOUNDED = "tests/permissions/test_bounded.py::"
PURE = "tests/mcp/test_pure.py::"

BOUND_MUTANTS = [
    Mutant(
        "long command lines are read on the event loop",
        "permissions/shell/bounded_reader.py",
        "    if _size(texts) <= SHORT:\n",
        "    if True:\n",
        f"{BOUNDED}test_the_loop_turns_while_hostile_calls_and_explains_pour_in",
    ),
    Mutant(
        "each command of a call may be short by itself",
        "permissions/shell/bounded_reader.py",
        "return sum(len(text) if",
        "return max(len(text) if",
        f"{BOUNDED}test_many_short_lines_in_one_call_are_not_read_on_the_loop",
    ),
    Mutant(
        "any number of calls may wait for the worker",
        "permissions/shell/bounded_reader.py",
        "if self._waiting >= MOST_WAITING:",
        "if False:",
        f"{BOUNDED}test_a_crowd_of_slow_lines_is_turned_away",
    ),
    Mutant(
        "whoever has waited is counted for ever",
        "permissions/shell/bounded_reader.py",
        "        future.add_done_callback(lambda _: self._count(-1))\n",
        "",
        f"{BOUNDED}test_a_crowd_of_slow_lines_is_turned_away",
    ),
    Mutant(
        "a line that was never answered is asked for again and again",
        "permissions/shell/bounded_reader.py",
        "        self.end()\n        return None\n",
        "        self.end()\n        return self._exchange(line)\n",
        f"{BOUNDED}test_a_line_that_takes_too_long_is_denied_and_the_next_one_is_read",
    ),
    Mutant(
        "an expression of the prompted format can go back",
        "models/prompted/blocks.py",
        r'[^\s"=]++[ \t]*+=*+[ \t\r]*)?)?',
        r'[^\s"=]+[ \t]*=*[ \t\r]*)?)?',
        "tests/security/test_expressions.py::test_no_expression_that_reads_untrusted_text_can_be_made_slow",
    ),
    Mutant(
        "the parts of a schema are not counted",
        "mcp/tool_list.py",
        "    if count_nodes(words, MOST_NODES) > MOST_NODES:",
        "    if count_nodes(words, MOST_NODES) < 0:",
        f"{PURE}test_a_question_whose_schema_has_too_many_parts_is_not_asked",
    ),
    Mutant(
        "the parts of all the schemas of a list are not counted",
        "mcp/tool_list.py",
        "        if left <= 0:\n",
        "        if left <= -1_000_000:\n",
        f"{PURE}test_of_a_list_whose_schemas_have_too_many_parts_together_the_rest_is_left_out",
    ),
]
