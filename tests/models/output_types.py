"""Random output types: a Python type that pydantic can validate, and JSON values of it.

A seed makes the same type and the same values every time. There is one maker per shape; `random_type` combines them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from typing import Annotated, Any, Final, Literal, Optional, Union
from uuid import UUID

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

Value = Callable[[random.Random], Any]
"""Makes a JSON value of a type."""
Made = tuple[Any, Value]


class Mixed(Enum):
    """An enum whose values are not of one type."""

    WORD = "word"
    NUMBER = 7
    NOTHING = None


class Tree(BaseModel):
    """A type that contains itself, in a property that need not be given."""

    name: str
    children: list[Tree] = []


class Chain(BaseModel):
    """A type that contains itself in a property that must be given."""

    value: int
    next: Chain | None


class Left(BaseModel):
    """Two types that contain each other."""

    right: Right | None = None


class Right(BaseModel):
    """The other one."""

    left: Left | None = None
    label: Literal["right"] = "right"


class Cat(BaseModel):
    """A branch of a union with a discriminator."""

    kind: Literal["cat"]
    lives: Annotated[int, Field(gt=0, le=9)]


class Dog(BaseModel):
    """The other one."""

    kind: Literal["dog"]
    weight: Decimal
    born: datetime | None = Field(default=None, description="When it was born.")


class Open(BaseModel):
    """An object that may have more than it says."""

    model_config = ConfigDict(extra="allow")
    known: str = "x"


class Empty(BaseModel):
    """An object without properties."""


class Typed(TypedDict, total=False):
    """A dict whose keys are known."""

    name: str
    size: float


FOUR: Final[tuple[Any, ...]] = ((str, ...), (int | None, None), (float, 1.5), (list[str], ...))
FIELDS: Final[dict[str, Any]] = {f"field_{number}": FOUR[number % 4] for number in range(60)}
Wide = create_model("Wide", **FIELDS)
Large = Enum("Large", {f"V{number}": f"value-{number}" for number in range(300)})
Huge = Enum("Huge", {f"V{number}": f"value-{number}" for number in range(1_200)})


def _deep(levels: int) -> Made:
    kind: Any = int

    def value(dice: random.Random) -> Any:
        nested: Any = 1
        for _ in range(levels):
            nested = {"inner": nested}
        return nested

    for level in range(levels):
        kind = create_model(f"Level{level}", inner=(kind, ...))
    return kind, value


def _tree(dice: random.Random, left: int = 3) -> Any:
    return {"name": dice.choice("abc"), "children": [_tree(dice, left - 1) for _ in range(dice.randint(0, left))]}


def _chain(dice: random.Random, left: int = 3) -> Any:
    return {"value": dice.randint(0, 9), "next": _chain(dice, left - 1) if left and dice.random() < 0.6 else None}


def _pet(dice: random.Random) -> Any:
    if dice.random() < 0.5:
        return {"kind": "cat", "lives": dice.randint(1, 9)}
    return {"kind": "dog", "weight": dice.choice(("12.50", 3)), "born": dice.choice((None, "2026-01-02T03:04:05Z"))}


TEXTS = ("", "a", 'say "hi"', "{", "}", "[1]", "Ünï 🐢", "back\\slash", "a\nb", '{"result": 1}', "```json")
WORDS = ("a", "abc", "xyz")
LEAVES: Final[dict[str, Made]] = {
    "str": (str, lambda dice: dice.choice(TEXTS)),
    "int": (int, lambda dice: dice.randint(-9, 10**6)),
    "float": (float, lambda dice: dice.choice((0.5, -1.25, 3.0, 1e20))),
    "bool": (bool, lambda dice: dice.random() < 0.5),
    "none": (type(None), lambda dice: None),
    "Decimal": (Decimal, lambda dice: dice.choice(("12.50", 3, 1.5))),
    "datetime": (datetime, lambda dice: "2026-01-02T03:04:05Z"),
    "date": (date, lambda dice: "2026-01-02"),
    "timedelta": (timedelta, lambda dice: "PT1H"),
    "UUID": (UUID, lambda dice: "12345678-1234-5678-1234-567812345678"),
    "url": (AnyUrl, lambda dice: "https://example.com/x"),
    "ip": (IPv4Address, lambda dice: "127.0.0.1"),
    "enum": (Mixed, lambda dice: dice.choice(("word", 7, None))),
    "large enum": (Large, lambda dice: f"value-{dice.randint(0, 299)}"),
    "huge enum": (Huge, lambda dice: f"value-{dice.randint(0, 1_199)}"),
    "literal": (Literal["a", "b", 3, True], lambda dice: dice.choice(("a", "b", 3, True))),
    "bounded int": (Annotated[int, Field(ge=2, lt=40, multiple_of=2)], lambda dice: dice.randrange(2, 40, 2)),
    "bounded float": (Annotated[float, Field(gt=0, le=1)], lambda dice: dice.choice((0.25, 1.0))),
    "bounded str": (Annotated[str, Field(min_length=1, max_length=5)], lambda dice: dice.choice(WORDS)),
    "pattern": (Annotated[str, Field(pattern="^[a-z]+$")], lambda dice: dice.choice(WORDS)),
    "any": (Any, lambda dice: dice.choice((1, "a", None, [1, {"a": 2}], {"b": []}))),
    "dict": (dict, lambda dice: {"x": [1], "y": "z"}),
    "tree": (Tree, _tree),
    "chain": (Chain, _chain),
    "mutual": (Left, lambda dice: {"right": {"left": {"right": None}, "label": "right"}}),
    "discriminated": (Annotated[Cat | Dog, Field(discriminator="kind")], _pet),
    "union of models": (Cat | Dog, _pet),
    "60 fields": (
        Wide,
        lambda dice: {f"field_{n}": ("s", dice.choice((None, n)), 2.5, ["a", "b"])[n % 4] for n in range(60)},
    ),
    "extra": (Open, lambda dice: {"known": "y"}),
    "empty": (Empty, lambda dice: {}),
    "typed dict": (Typed, lambda dice: {"name": "n", "size": 1.5}),
    "8 deep": _deep(8),
    "14 deep": _deep(14),
}


def random_type(dice: random.Random, depth: int = 3) -> tuple[str, Any, Value]:
    """A type in words, the type itself, and a maker of its values."""
    shape = dice.choice(("leaf", "leaf", "list", "optional", "union", "tuple", "dict", "set", "model", "model", "keys"))
    if depth <= 0 or shape == "leaf":
        name = dice.choice(tuple(LEAVES))
        return name, *LEAVES[name]
    inner, kind, value = random_type(dice, depth - 1)
    match shape:
        case "list":
            bounds = Field(min_length=dice.choice((0, 1, 2)), max_length=4)
            return (
                f"list[{inner}]",
                Annotated[list[kind], bounds],
                lambda dice: [value(dice) for _ in range(dice.randint(2, 4))],
            )
        case "optional":
            return f"{inner}?", Optional[kind], lambda dice: None if dice.random() < 0.3 else value(dice)  # noqa: UP045
        case "union":
            other, other_kind, value_of_other = random_type(dice, depth - 1)
            either = Union[kind, other_kind]  # noqa: UP007
            return f"{inner} | {other}", either, lambda dice: (value if dice.random() < 0.5 else value_of_other)(dice)
        case "tuple":
            return f"tuple[{inner}, int]", tuple[kind, int], lambda dice: [value(dice), dice.randint(0, 9)]
        case "dict":
            return (
                f"dict[str, {inner}]",
                dict[str, kind],
                lambda dice: {key: value(dice) for key in ("k", "it's", "k 2")},
            )
        case "keys":
            return f"dict[Literal, {inner}]", dict[Literal["x", "y"], kind], lambda dice: {"x": value(dice)}
        case "set":
            return "set[int]", set[int], lambda dice: dice.sample(range(50), 3)
        case _:
            return _model(dice, depth)


def _model(dice: random.Random, depth: int) -> tuple[str, Any, Value]:
    fields: dict[str, Any] = {}
    values: dict[str, Value] = {}
    names: list[str] = []
    for number in range(dice.randint(1, 5)):
        inner, kind, value = random_type(dice, depth - 1)
        described = Field(description=f"Number {number}.") if dice.random() < 0.3 else ...
        name = dice.choice((f"field_{number}", f"result_{number}", "result"))
        fields[name], values[name] = (kind, described), value
        names.append(inner)
    model = create_model(dice.choice(("Record", "Die Größe", "result")), **fields)
    return f"{{{', '.join(names)}}}", model, lambda dice: {name: value(dice) for name, value in values.items()}
