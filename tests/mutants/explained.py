"""Seeded bugs in who decides on a call, and in what is explained; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

AGREES = "tests/permissions/test_explained.py::test_what_is_explained_is_what_happens"
APPROVAL = "tests/permissions/test_approval.py::"

EXPLAINED_MUTANTS = [
    Mutant(
        "explain ignores a layer: the rules of the configuration",
        "cli/commands/permissions.py",
        '    app = parts.app(model, "")',
        '    parts.rules.clear()\n    app = parts.app(model, "")',
        AGREES,
    ),
    Mutant(
        "explain ignores an agent's rule",
        "cli/commands/permissions.py",
        "            parts.options,\n",
        "            type(parts.options)(tools=parts.options.tools),\n",
        AGREES,
    ),
    Mutant(
        "explain ignores a default: what a tool says of itself",
        "terminal/text/permissions.py",
        "    spec = tool.spec if tool is not None else",
        '    spec = ToolSpec(name, "", {}, approval="ask", subjects=tool.spec.subjects) if tool is not None else',
        AGREES,
    ),
    Mutant(
        "explain ignores the defaults of arguments",
        "terminal/text/permissions.py",
        "    validated = arguments if tool is None else tool.validate(arguments) or arguments\n",
        "    validated = arguments\n",
        AGREES,
    ),
    Mutant(
        "explain ignores a grant",
        "terminal/text/permissions.py",
        "    grants = await _grants(store, session) if store else []\n",
        "    grants = list[Grant]()\n",
        AGREES,
    ),
    Mutant(
        "the API explains without an agent's rules",
        "access/rules/explain_view.py",
        "validated, options, granted)",
        "validated, type(options)(), granted)",
        AGREES,
    ),
    Mutant(
        "the API explains without grants",
        "access/administration/admin.py",
        "granted = await self._granted_rules(request.session, agent) if request.session is not None else []",
        "granted = list[Rule]()",
        AGREES,
    ),
    Mutant(
        "a rule for every tool allows one that acts",
        "core/rules/policy.py",
        "if rule.matches_loosely or not rule.is_for_every_tool] if is_acting",
        "if True] if is_acting",
        f"{APPROVAL}test_a_rule_for_every_tool_allows_none_that_acts",
    ),
    Mutant(
        "the shell of a server asks as that of a terminal does",
        "config/tools.py",
        '("ask" if is_personal else "always")',
        '"ask"',
        f"{APPROVAL}test_a_configuration_says_who_decides",
    ),
    Mutant(
        "a command that was allowed is allowed to everybody",
        "running/permissions.py",
        'if grant.asker not in ("", by) or grant.folder',
        "if grant.folder",
        f"{APPROVAL}test_a_command_that_was_allowed_is_allowed_to_whoever_asked_and_to_nobody_else",
    ),
    Mutant(
        "a screen offers to allow a command everywhere",
        "calls/admit.py",
        "*shown, session_only=session_only)",
        "*shown)",
        f"{APPROVAL}test_a_command_is_not_allowed_everywhere",
    ),
    Mutant(
        "files are asked about every time",
        "tools/files/__init__.py",
        '    hidden: bool = False,\n    approval: Approval = "ask",',
        '    hidden: bool = False,\n    approval: Approval = "always",',
        f"{APPROVAL}test_the_rule_of_the_first_file_lets_a_file_be_written_and_any_other_is_asked_about",
    ),
]
