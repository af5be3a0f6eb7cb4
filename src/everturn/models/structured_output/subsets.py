"""Schema subsets: the part of JSON Schema that each vendor documents for structured output, as data.

Each has the address of its source. `everturn.testing.provider.strict.schemas` enforces the same rules, one by one.
Where a rule is not in a document but in a server's answers, a comment says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

Recursion = Literal["allowed", "optional", "none"]
"""Whether a definition may refer to itself: anywhere, only inside a property that is not required, or nowhere."""

NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_ARRAYS = frozenset({"minItems", "maxItems"})
_NOTHING: frozenset[str] = frozenset()


class SchemaSubset(Struct, frozen=True, kw_only=True):
    """What a schema may say. `limits` are the largest numbers of what `SchemaSize` counts."""

    name: str
    source: str
    needs_object: bool = False  # the root is an object, and not a choice
    is_closed: bool = False  # every object has additionalProperties: false
    requires_all: bool = False  # every property is required
    allows_any: bool = False  # a schema may leave the type open
    recursion: Recursion = "none"
    has_refs: bool = True  # otherwise definitions are written where they are used
    numbers: frozenset[str] = _NOTHING  # bounds of numbers
    integers: frozenset[str] = _NOTHING  # bounds of integers
    arrays: frozenset[str] = _NOTHING
    least_items: int | None = None  # the largest minItems, where that is limited
    has_pattern: bool = False
    has_prefix_items: bool = False
    formats: frozenset[str] = _NOTHING  # of strings
    enums: frozenset[type] = frozenset({str, int, float, bool})  # types of the values of an enum
    limits: Mapping[str, int] = {}


_OPENAI_LIMITS: Mapping[str, int] = {
    "depth": 10,
    "properties": 5_000,
    "enum_values": 1_000,
    "name_size": 120_000,
    "large_enum_size": 15_000,
}

# https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
# - Supported types: string, number, boolean, integer, object, array, enum, anyOf. allOf, not, dependentRequired,
#   dependentSchemas, if, then and else are not.
# - Root objects must not be anyOf and must be an object.
# - All fields must be required. additionalProperties: false must always be set.
# - Objects have limits on nesting depth and size: 5,000 properties, 10 levels; names and values of at most 120,000
#   characters together; 1,000 enum values, and 15,000 characters in one enum of more than 250 strings.
# - Strings: pattern, format (the nine below). Numbers: multipleOf, maximum, exclusiveMaximum, minimum,
#   exclusiveMinimum. Arrays: minItems, maxItems. minLength and maxLength are not in the list.
# - Definitions and recursive schemas are supported.
# The page itself was not at hand: the limits are as https://docs.rs/crate/artifactize-core/latest quotes it, the rest is our
# own knowledge of it. From its answers, not from the page: `default` is refused
# (https://zenn.dev/nicopin/scraps/a8d8f53f5faebb); and, our own knowledge, a `$ref` has no other field beside it, and a
# pattern has no lookaround.
_OPENAI = SchemaSubset(
    name="openai",
    source="https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas",
    needs_object=True,
    is_closed=True,
    requires_all=True,
    recursion="allowed",
    numbers=NUMBERS,
    integers=NUMBERS,
    arrays=_ARRAYS,
    has_pattern=True,
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}),
    limits=_OPENAI_LIMITS,
)

# The same page: fine-tuned models support none of minLength, maxLength, pattern, format, minimum, maximum, multipleOf,
# patternProperties, minItems, maxItems.
_OPENAI_FINE_TUNED = SchemaSubset(
    name="openai-fine-tuned",
    source=_OPENAI.source,
    needs_object=True,
    is_closed=True,
    requires_all=True,
    recursion="allowed",
    limits=_OPENAI_LIMITS,
)

# https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
# - Supported: all basic types, enum (strings, numbers, booleans, nulls), const, anyOf, allOf, $ref, $defs,
#   required, additionalProperties: false for every object, the ten string formats below, minItems of 0 and 1.
# - Not supported: recursive schemas, complex values in enums, external $ref, minimum, maximum, multipleOf, minLength,
#   maxLength, any other constraint of arrays, additionalProperties other than false.
# - Limits of a request: 24 optional parameters, 16 parameters with union types (our own knowledge of the page).
# The formats and minItems are also in the SDK, which drops all else:
# https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/lib/_parse/_transform.py
# A pattern is supported in part; which part is not said, so none is sent.
_ANTHROPIC = SchemaSubset(
    name="anthropic",
    source="https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations",
    needs_object=True,
    is_closed=True,
    arrays=frozenset({"minItems"}),
    least_items=1,
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}),
    limits={"optional": 24, "unions": 16},
)

# responseJsonSchema, as its SDKs document it (see `source`):
# - Only these are supported: $id, $defs, $ref, $anchor, type, format, title, description, enum (for strings and numbers),
#   items, prefixItems, minItems, maxItems, minimum, maximum, anyOf, oneOf (the same as anyOf), properties,
#   additionalProperties, required, propertyOrdering.
# - Cyclic references are unrolled to a limited degree, and may only be used within non-required properties.
# - Beside a $ref there are no other properties, except those that start with a $.
# Our own knowledge: the formats of strings are date-time, date and time.
_GEMINI = SchemaSubset(
    name="gemini",
    source="https://googleapis.github.io/kotlin-genai/google-genai-kotlin/com.google.genai.kotlin.types/"
    "-generate-content-config/response-json-schema.html",
    recursion="optional",
    numbers=frozenset({"minimum", "maximum"}),
    integers=frozenset({"minimum", "maximum"}),
    arrays=_ARRAYS,
    has_prefix_items=True,
    formats=frozenset({"date-time", "date", "time"}),
    enums=frozenset({str, int, float}),
)

# https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md#json-schemas--gbnf (Ollama uses this converter)
# - Unsupported features are skipped silently.
# - Bounds work for integers only. prefixItems, nested $refs, uniqueItems, not, if, patternProperties do not work.
# - properties cannot stand beside anyOf. Formats: date, time, date-time, uuid; not uri and email.
# - A pattern begins with ^ and ends with $; in items it still fails (https://github.com/ggml-org/llama.cpp/issues/25895),
#   so none is sent.
# Recursion fails in Ollama (https://github.com/ollama/ollama/issues/7993), and so do definitions in some orders
# (https://github.com/ollama/ollama/issues/8444): they are written where they are used.
_LLAMACPP = SchemaSubset(
    name="llamacpp",
    source="https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md#json-schemas--gbnf",
    allows_any=True,
    has_refs=False,
    integers=frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    arrays=_ARRAYS,
    formats=frozenset({"date-time", "date", "time", "uuid"}),
)

# https://docs.vllm.ai/en/latest/features/structured_outputs.html: a JSON schema, for one of several backends. What these
# refuse (multipleOf, uniqueItems, contains, patternProperties, …) is our own knowledge.
_VLLM = SchemaSubset(
    name="vllm",
    source="https://docs.vllm.ai/en/latest/features/structured_outputs.html",
    allows_any=True,
    recursion="allowed",
    numbers=NUMBERS - {"multipleOf"},
    integers=NUMBERS - {"multipleOf"},
    arrays=_ARRAYS,
    has_pattern=True,
    has_prefix_items=True,
    formats=frozenset({"date-time", "date", "time", "email", "ipv4", "ipv6", "uuid"}),
)

SUBSETS: Final[Mapping[str, SchemaSubset]] = {
    subset.name: subset for subset in (_OPENAI, _OPENAI_FINE_TUNED, _ANTHROPIC, _GEMINI, _LLAMACPP, _VLLM)
}
"""By name; a profile names one in `output_subset`."""

FORMAT_SUBSETS: Final[Mapping[str, str]] = {
    "chat": "openai",
    "responses": "openai",
    "messages": "anthropic",
    "gemini": "gemini",
    "ollama": "llamacpp",
    "converse": "anthropic",
}
"""The subset of a wire format, for profiles that name none."""
