"""Output schema validation: refuses a schema outside of the subset that its vendor documents.

`RULES` has every rule with its source; a refusal names its rule. OpenAI and Anthropic refuse such a schema themselves.
Gemini and the converter of Ollama and llama.cpp skip some of what they do not support, and the answer then fits another
schema than the one that was sent: that is refused here, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from everturn.testing.provider.faults import Refused, is_list, is_object

Json = dict[str, Any]

_OPENAI = "https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas"
_CLAUDE = "https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations"
_GEMINI = (
    "https://googleapis.github.io/kotlin-genai/google-genai-kotlin/com.google.genai.kotlin.types/"
    "-generate-content-config/response-json-schema.html"
)
_GBNF = "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md#json-schemas--gbnf"
RULES: Final[dict[str, str]] = {
    "openai.root-object": _OPENAI,
    "openai.closed": _OPENAI,
    "openai.all-required": _OPENAI,
    "openai.keyword": _OPENAI,
    "openai.typed": _OPENAI,
    "openai.format": _OPENAI,
    "openai.pattern": _OPENAI,  # that lookaround is refused is our own knowledge; the page only lists `pattern`
    "openai.ref-alone": _OPENAI,  # our own knowledge of its error text; the page does not say it
    "openai.depth": _OPENAI,
    "openai.properties": _OPENAI,
    "openai.enum-values": _OPENAI,
    "openai.enum-size": _OPENAI,
    "openai.name-size": _OPENAI,
    "anthropic.root-object": _CLAUDE,
    "anthropic.closed": _CLAUDE,
    "anthropic.keyword": _CLAUDE,
    "anthropic.typed": "https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/lib/_parse/_transform.py",
    "anthropic.format": _CLAUDE,
    "anthropic.min-items": _CLAUDE,
    "anthropic.enum": _CLAUDE,
    "anthropic.recursion": _CLAUDE,
    "anthropic.external-ref": _CLAUDE,
    "anthropic.optional": _CLAUDE,  # the number is our own knowledge of the page, not checked against a copy
    "anthropic.unions": _CLAUDE,  # this one, too
    "gemini.keyword": _GEMINI,
    "gemini.enum": _GEMINI,
    "gemini.ref-alone": _GEMINI,
    "gemini.recursion": _GEMINI,
    "llamacpp.keyword": _GBNF,
    "llamacpp.bounds": _GBNF,
    "llamacpp.format": _GBNF,
    "llamacpp.mixed-choice": _GBNF,
    "llamacpp.ref": "https://github.com/ollama/ollama/issues/8444",
    "deepseek.no-schema": "https://github.com/llm-exe/llm-exe/issues/662",
    "kimi.forced-call": "https://docs.rs/crate/harn-vm/latest/source/src/llm/capability_sources/20-providers/35-moonshot.toml",
}
"""Every rule, and where it is documented."""

_SHARED = frozenset(
    "type title description enum anyOf $ref $defs properties required additionalProperties items".split()
)
_BOUNDS = frozenset("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split())
_KEYWORDS: Final[dict[str, frozenset[str]]] = {
    "openai": _SHARED | _BOUNDS | frozenset("const pattern format minItems maxItems definitions".split()),
    "anthropic": _SHARED | frozenset("const allOf format minItems definitions default".split()),
    "gemini": _SHARED
    | frozenset("$id $anchor format prefixItems minItems maxItems minimum maximum oneOf propertyOrdering".split()),
    "llamacpp": _SHARED
    | _BOUNDS
    | frozenset("const oneOf allOf format pattern minItems maxItems minLength maxLength default".split()),
}
_FORMATS: Final[dict[str, frozenset[str]]] = {
    "openai": frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split()),
    "anthropic": frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split()),
    "llamacpp": frozenset("date-time time date uuid".split()),
}
_LOOKAROUND = ("(?=", "(?!", "(?<")
_MAX_DEPTH, _MAX_PROPERTIES, _MAX_VALUES, _MAX_NAMES = 10, 5_000, 1_000, 120_000
_LARGE_ENUM, _MAX_LARGE_ENUM = 250, 15_000
_MAX_OPTIONAL, _MAX_UNIONS = 24, 16


def broken(rule: str, text: str, param: str | None = None, code: str | None = None) -> Refused:
    """The refusal of a schema: the vendor's words, the rule, and its source."""
    return Refused(f"{text} [rule {rule}, see {RULES[rule]}]", param, code)


# What all have in common ----------------------------------------------------------------------------------------------


def _nodes(schema: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every schema in a schema, with its path."""
    yield path, schema
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        inner = schema.get(key)
        for name, value in inner.items() if is_object(inner) else ():
            if is_object(value):
                yield from _nodes(value, (*path, key, name))
    for key in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
        value = schema.get(key)
        if is_object(value):
            yield from _nodes(value, (*path, key))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        listed = schema.get(key)
        for i, value in enumerate(listed if is_list(listed) else ()):
            if is_object(value):
                yield from _nodes(value, (*path, key, str(i)))


def _properties(schema: Json, key: str = "properties") -> Json:
    return schema.get(key) or {}


def _target(root: Json, ref: Any) -> Json | None:
    node: Any = root
    for name in str(ref).removeprefix("#").strip("/").split("/") if ref != "#" else ():
        node = node.get(name.replace("~1", "/").replace("~0", "~")) if is_object(node) else None
    return node if is_object(node) else None


def _reaches_itself(root: Json, *, is_required_only: bool = False) -> bool:
    """Whether a definition contains itself, or, if wanted, contains itself in nothing but required properties."""

    def walk(schema: Json, above: tuple[str, ...]) -> bool:
        ref = schema.get("$ref")
        if ref is not None:
            target = _target(root, ref)
            return str(ref) in above or (target is not None and walk(target, (*above, str(ref))))
        inner: list[Any] = [schema.get("items"), schema.get("additionalProperties")]
        for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            inner += schema.get(key) or ()
        required = schema.get("required") or ()
        inner += [value for name, value in _properties(schema).items() if not is_required_only or name in required]
        return any(walk(value, above) for value in inner if is_object(value))

    return any(walk({"$ref": f"#/$defs/{name}"}, ()) for name in _properties(root, "$defs")) or walk(root, ())


def _depth(root: Json, schema: Json, above: tuple[str, ...] = ()) -> int:
    """Levels of objects and arrays, through references."""
    ref = schema.get("$ref")
    if ref is not None:
        target = _target(root, ref)
        return 0 if target is None or str(ref) in above else _depth(root, target, (*above, str(ref)))
    inner: list[Any] = [schema.get("items"), *(schema.get("anyOf") or ()), *_properties(schema).values()]
    levels = [_depth(root, value, above) for value in inner if is_object(value)]
    return (schema.get("type") in ("object", "array")) + max(levels, default=0)


def _unknown(vendor: str, schema: Json) -> list[str]:
    return sorted(schema.keys() - _KEYWORDS[vendor])


# OpenAI ---------------------------------------------------------------------------------------------------------------


def _openai_words(root: Json, schema: Json) -> Iterator[tuple[str, str]]:
    """A schema has a type, and only words that are supported; a reference stands alone."""
    if "$ref" in schema:
        if beside := sorted(schema.keys() - {"$ref"}):
            yield "ref-alone", f"$ref cannot have keywords {beside}."
        if _target(root, schema["$ref"]) is None:
            yield "keyword", f"reference to component '{schema['$ref']}' which was not found"
        return
    if unknown := _unknown("openai", schema):
        yield "keyword", f"'{unknown[0]}' is not permitted."
    if not schema.keys() & {"type", "anyOf", "enum", "const"}:
        yield "typed", "schema must have a 'type' key."
    if schema.get("format") is not None and schema["format"] not in _FORMATS["openai"]:
        yield "format", f"'{schema['format']}' is not a valid format."
    if any(mark in str(schema.get("pattern", "")) for mark in _LOOKAROUND):
        yield "pattern", "lookaround is not supported in 'pattern'."


def _openai_object(root: Json, schema: Json) -> Iterator[tuple[str, str]]:
    """An object is closed, and requires all of its properties."""
    if schema.get("type") != "object":
        return
    if schema.get("additionalProperties") is not False:
        yield "closed", "'additionalProperties' is required to be supplied and to be false."
    listed = schema.get("required") or ()
    for key in _properties(schema):
        if key not in listed:
            why = "'required' is required to be supplied and to be an array including every key in properties."
            yield "all-required", f"{why} Missing '{key}'."


def _openai_limits(root: Json) -> Iterator[tuple[str, str]]:
    """A schema is not too deep, and its names and values are not too many."""
    enums = [schema.get("enum") or () for _, schema in _nodes(root)]
    sizes = [sum(len(str(value)) for value in enum) for enum in enums]
    keys = [name for _, schema in _nodes(root) for name in (*_properties(schema), *_properties(schema, "$defs"))]
    properties = sum(len(_properties(schema)) for _, schema in _nodes(root))
    for enum, size in zip(enums, sizes, strict=True):
        if len(enum) > _LARGE_ENUM and size > _MAX_LARGE_ENUM:
            yield "enum-size", f"an enum of {len(enum)} values has {size} characters; limit is {_MAX_LARGE_ENUM}."
    if (levels := _depth(root, root)) > _MAX_DEPTH:
        yield "depth", f"{levels} levels of nesting exceeds limit of {_MAX_DEPTH}."
    if properties > _MAX_PROPERTIES:
        yield "properties", f"{properties} properties exceeds limit of {_MAX_PROPERTIES}."
    if (values := sum(map(len, enums))) > _MAX_VALUES:
        yield "enum-values", f"{values} enum values exceeds limit of {_MAX_VALUES}."
    if (names := sum(sizes) + sum(map(len, keys))) > _MAX_NAMES:
        yield "name-size", f"{names} characters of names and values exceeds limit of {_MAX_NAMES}."


def check_openai_schema(param: str, name: str, root: Json) -> None:
    """A strict schema is an object that is closed and requires all it has, in few words and within limits."""

    def bad(rule: str, why: str) -> Refused:
        text = f"Invalid schema for response_format '{name}': {why}"
        return broken(f"openai.{rule}", text, param, "invalid_json_schema")

    if root.get("type") != "object" or "anyOf" in root:
        kind = root.get("type")
        raise bad("root-object", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.")
    for path, schema in _nodes(root):
        for rule, why in (*_openai_words(root, schema), *_openai_object(root, schema)):
            raise bad(rule, f"In context={path!r}, {why}")
    for rule, why in _openai_limits(root):
        raise bad(rule, why)


# Anthropic ------------------------------------------------------------------------------------------------------------


def _claude_words(root: Json, schema: Json) -> Iterator[tuple[str, str]]:
    """A schema has a type, only words that are supported, and references that stay inside."""
    kind = schema.get("type")
    if "$ref" in schema:
        if not str(schema["$ref"]).startswith("#") or _target(root, schema["$ref"]) is None:
            yield "external-ref", f"Unresolvable reference '{schema['$ref']}': external references are not supported"
        return
    if unknown := _unknown("anthropic", schema):
        yield "keyword", f"For '{kind}' type, properties {', '.join(unknown)} are not supported"
    if not schema.keys() & {"type", "anyOf", "allOf", "enum", "const"}:
        yield "typed", "Schema must have a 'type', 'enum', 'anyOf' or 'allOf' field"


def _claude_values(root: Json, schema: Json) -> Iterator[tuple[str, str]]:
    """An object is closed, and there are few constraints of other values."""
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield "closed", "For 'object' type, 'additionalProperties' must be explicitly set to false"
    if schema.get("format") is not None and schema["format"] not in _FORMATS["anthropic"]:
        yield "format", f"For 'string' type, format '{schema['format']}' is not supported"
    if schema.get("minItems", 0) not in (0, 1):
        yield "min-items", "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
    if any(is_list(value) or is_object(value) for value in schema.get("enum") or ()):
        yield "enum", "Enum values must be strings, numbers, booleans or nulls"


def _claude_limits(root: Json) -> Iterator[tuple[str, str]]:
    """There is no recursion, and few properties are optional or of several types."""
    schemas = [schema for _, schema in _nodes(root)]
    optional = sum(len(_properties(node).keys() - set(node.get("required") or ())) for node in schemas)
    unions = sum("anyOf" in node or is_list(node.get("type")) for node in schemas)
    if _reaches_itself(root):
        yield "recursion", "Circular reference detected: recursive schemas are not supported"
    if optional > _MAX_OPTIONAL:
        yield "optional", f"Schemas contain too many optional parameters ({optional}), limit is {_MAX_OPTIONAL}"
    if unions > _MAX_UNIONS:
        yield "unions", f"Schemas contain too many parameters with union types ({unions}), limit is {_MAX_UNIONS}"


def check_anthropic_schema(root: Json) -> None:
    """An output schema is an object, closed, without recursion and constraints, with few options."""

    def bad(rule: str, why: str) -> Refused:
        return broken(f"anthropic.{rule}", f"output_config.format.schema: {why}")

    if root.get("type") != "object":
        raise bad("root-object", "the root must be of type 'object'")
    for _, schema in _nodes(root):
        for rule, why in (*_claude_words(root, schema), *_claude_values(root, schema)):
            raise bad(rule, why)
    for rule, why in _claude_limits(root):
        raise bad(rule, why)


# Gemini ---------------------------------------------------------------------------------------------------------------


def check_gemini_schema(root: Json) -> None:
    """A JSON schema has only the documented properties, and recursion only where it may end."""

    def bad(rule: str, why: str) -> Refused:
        return broken(f"gemini.{rule}", f"* GenerateContentRequest.generation_config.response_json_schema: {why}\n")

    for path, schema in _nodes(root):
        if "$ref" in schema and (beside := [key for key in schema if not key.startswith("$")]):
            raise bad("ref-alone", f"beside $ref no other property may be set, found {beside} at {path!r}")
        if unknown := _unknown("gemini", schema):
            raise bad("keyword", f"{unknown[0]} is not supported, at {path!r}")
        for value in schema.get("enum") or ():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise bad("enum", f"enum is supported for strings and numbers, at {path!r}")
    if _reaches_itself(root, is_required_only=True):
        raise bad("recursion", "cyclic references may only be used within non-required properties")


# llama.cpp, and Ollama ------------------------------------------------------------------------------------------------


def check_grammar_schema(root: Json) -> None:
    """A schema has nothing that its converter to a grammar skips or fails on."""

    def bad(rule: str, why: str) -> Refused:
        return broken(f"llamacpp.{rule}", f"failed to parse grammar: {why}")

    for path, schema in _nodes(root):
        if "$ref" in schema or "$defs" in schema:
            raise bad("ref", f"$ref at {path!r}; nested references are broken")
        if unknown := _unknown("llamacpp", schema):
            raise bad("keyword", f"{unknown[0]} at {path!r} is skipped silently")
        if schema.get("type") == "number" and schema.keys() & _BOUNDS:
            raise bad("bounds", f"bounds of a number at {path!r} are skipped silently; integers have them")
        if schema.get("format") is not None and schema["format"] not in _FORMATS["llamacpp"]:
            raise bad("format", f"format {schema['format']} at {path!r} is skipped silently")
        if "properties" in schema and schema.keys() & {"anyOf", "oneOf"}:
            raise bad("mixed-choice", f"properties beside a choice at {path!r}")
