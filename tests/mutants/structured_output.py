"""Seeded bugs in structured output; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

UNIT = "tests/models/test_structured_output.py::"
PLAYED = "tests/models/test_output_schedules.py::test_every_type_comes_back_as_its_json_from_every_vendor"
RULES = "tests/testing/test_strict_schemas.py::test_a_schema_that_breaks_a_rule_is_refused_by_its_name"
WRITER = "models/structured_output/schema_writer.py"
READER = "models/structured_output/output_reader.py"

STRUCTURED_OUTPUT_MUTANTS = [
    Mutant(
        "optional properties stay optional where all are required",
        WRITER,
        'written["required"] = list(properties)',
        'written["required"] = required',
        PLAYED,
    ),
    Mutant(
        "objects stay open where they must be closed",
        WRITER,
        "if subset.is_closed or others is False:",
        "if others is False:",
        PLAYED,
    ),
    Mutant(
        "a recursive type is sent to who has no recursion",
        WRITER,
        'if recursion == "none" or not self._subset.has_refs:',
        "if False:",
        PLAYED,
    ),
    Mutant(
        "a description stands beside a reference",
        WRITER,
        'return {"$ref": f"#/$defs/{escape_name(name)}"}',
        'return {"$ref": f"#/$defs/{escape_name(name)}", "description": "It is."}',
        PLAYED,
    ),
    Mutant(
        "an exclusive bound becomes an inclusive one that is off by one",
        WRITER,
        '"exclusiveMaximum": ("maximum", -1)',
        '"exclusiveMaximum": ("maximum", -3)',
        f"{UNIT}test_a_bound_that_a_vendor_does_not_know_is_told_in_words",
    ),
    Mutant(
        "the wrapper is left around a value",
        "models/structured_output/json_text.py",
        """self._tokens = ("{", f'"{key}"', ":") if key else ()""",
        "self._tokens = ()",
        PLAYED,
    ),
    Mutant(
        "a brace in a string ends the object",
        "models/structured_output/json_text.py",
        "        if self._in_string:\n",
        "        if False:\n",
        f"{UNIT}test_the_json_is_found_however_the_text_is_cut",
    ),
    Mutant(
        "a turn that was answered by the output tool waits for its result",
        READER,
        'out.append(replace(chunk, reason="stop") if is_answer else chunk)',
        "out.append(chunk)",
        f"{UNIT}test_the_arguments_of_the_output_tool_are_the_text_and_nobody_sees_a_call",
    ),
    Mutant(
        "what a model says before its answer is part of the answer",
        READER,
        "out += [ReasoningChunk(held.text) for held",
        "out += [TextChunk(held.text) for held",
        PLAYED,
    ),
    Mutant(
        "the output tool takes the name of another tool",
        "models/structured_output/plan.py",
        "(name := _numbered(number)) not in names)",
        "(name := _numbered(number)))",
        PLAYED,
    ),
    Mutant(
        "a call is forced where that is refused",
        "models/structured_output/plan.py",
        "return self._profile.can_force_call and not is_thinking",
        "return True",
        PLAYED,
    ),
    Mutant(
        "the provider lets open objects pass",
        "testing/provider/strict/schemas.py",
        'yield "closed", "\'additionalProperties\' is required',
        'return\n        yield "closed", "\'additionalProperties\' is required',
        f"{RULES}[openai.closed]",
    ),
    Mutant(
        "the provider does not notice recursion",
        "testing/provider/strict/schemas.py",
        "return str(ref) in above or (target",
        "return str(ref) not in above and (target",
        f"{RULES}[anthropic.recursion]",
    ),
]
