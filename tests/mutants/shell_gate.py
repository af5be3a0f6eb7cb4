"""Seeded bugs in how command lines are judged; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

EXPANSIONS = "tests/permissions/test_expansions.py::"
POWERS = "tests/permissions/test_capabilities.py::"
EFFECTS = "tests/permissions/test_effects.py::"
NAMED = "tests/sandbox/test_file_hashes.py::"
SAME = f"{EXPANSIONS}test_a_literal_and_an_expansion_are_never_the_same_subject"
COULD_BE = f"{EXPANSIONS}test_a_word_that_could_be_an_option_of_a_program_with_powers_is_a_power"
GOT_ROUND = f"{EXPANSIONS}test_what_got_round_a_gate_is_asked_about_or_refused"
DENIES = f"{EXPANSIONS}test_a_rule_that_denies_fits_where_an_expansion_could_make_it_fit"
ALLOWS = f"{EXPANSIONS}test_a_rule_that_allows_fits_an_expansion_where_anything_may_stand"
FORMS = f"{EFFECTS}test_the_hostile_forms_are_refused_as_they_are"

SHELL_GATE_MUTANTS = [
    Mutant(
        "an expansion is written like the literal text",
        "core/rules/shell_expansion.py",
        'return f"{EXPANSION_MARK}{source}{EXPANSION_MARK_END}"',
        "return source",
        SAME,
    ),
    Mutant(
        "a literal may be written like an expansion",
        "permissions/shell/word_expansion.py",
        "    if text.startswith(EXPANSION_MARK):\n",
        "    if text.startswith(EXPANSION_MARK) and not text:\n",
        f"{EXPANSIONS}test_no_literal_can_be_written_like_an_expansion",
    ),
    Mutant(
        "a word that is not known is no option",
        "permissions/shell/capabilities.py",
        'if role == "option" or beyond or (',
        "if beyond or (",
        COULD_BE,
    ),
    Mutant(
        "a glob is no option",
        "core/rules/shell_expansion.py",
        'return self.count == "any" or self.prefix == "" or self.prefix[0] in signs',
        'return self.count == "any" or self.prefix[:1] in tuple(signs)',
        COULD_BE,
    ),
    Mutant(
        "a rule that denies takes an expansion for its text",
        "core/rules/shell_expansion.py",
        "            after |= _next_positions(at, expansion, patterns)\n",
        "",
        DENIES,
    ),
    Mutant(
        "a rule that denies thinks that an expansion is one word",
        "core/rules/shell_expansion.py",
        "            after.update(range(place + 1, size + 1))\n",
        "            pass\n",
        "tests/permissions/test_expansions.py::test_bash_makes_of_every_word_what_was_read",
    ),
    Mutant(
        "a star of a rule that allows is for many words",
        "core/rules/shell_expansion.py",
        'if expansion.count != "one" or isinstance(',
        "if isinstance(",
        ALLOWS,
    ),
    Mutant(
        "braces are spread in the wrong order",
        "permissions/shell/word_expansion.py",
        "for part in parts for after in rest]",
        "for after in rest for part in parts]",
        f"{EXPANSIONS}test_bash_makes_of_every_word_what_was_read",
    ),
    Mutant(
        "two dashes always end the options",
        "permissions/shell/arguments.py",
        'elif word.text == "--" and takes == "no" and program.has_double_dash:',
        'elif word.text == "--":',
        GOT_ROUND,
    ),
    Mutant(
        "what env splits is seen in the first letters only",
        "permissions/shell/wrappers.py",
        'if not is_long and "S" in re.split(f"[{wrapper.valued}]", text)[0]:',
        'if not is_long and "S" in text[:4]:',
        f"{EXPANSIONS}test_a_cluster_in_which_env_splits_its_words_is_not_read",
    ),
    Mutant(
        "an option of a wrapper that is not known does nothing",
        "permissions/shell/wrappers.py",
        "            yield make_capability(words, word)\n        elif word.text:",
        "            continue\n        elif word.text:",
        f"{EXPANSIONS}test_an_option_of_a_wrapper_that_is_not_known_is_a_power",
    ),
    Mutant("curl writes nothing by its format", "permissions/shell/capabilities.py", '    "curl": _curl,\n', "", FORMS),
    Mutant(
        "uniq reads all its files",
        "permissions/shell/programs.py",
        '"uniq": ProgramOptions(valued="fsw", inputs=1,',
        '"uniq": ProgramOptions(valued="fsw",',
        FORMS,
    ),
    Mutant(
        "more of any command is offered",
        "running/permissions.py",
        'if subject.words[0] in READ_ONLY_PROGRAMS else ""',
        'if subject.words[0] else ""',
        f"{POWERS}test_nothing_wider_is_offered_where_it_would_be_for_anything",
    ),
    Mutant(
        "files may change between the gate and the run",
        "tools/code/shell.py",
        "            await self._check_files(context.base_version)\n",
        "",
        f"{NAMED}test_a_file_that_changed_after_the_gate_is_not_run_and_asked_about_again",
    ),
    Mutant(
        "a file that was not there is not bound",
        "tools/code/file_hashes.py",
        "states = {name: _state(folder, name) for name in names}",
        "states = {name: state for name in names if (state := _state(folder, name))}",
        f"{NAMED}test_what_a_file_holds_is_seen_and_that_it_comes_or_goes",
    ),
]
