"""What a model is told of arguments that do not fit."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, field_validator

from everturn import tool
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments
from everturn.tools.validation_errors import (
    LONGEST_EXCERPT,
    MOST_PROBLEMS,
    ValidationProblem,
    explain_validation_errors,
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    city: str
    title: str = "home"

    @field_validator("city")
    @classmethod
    def check(cls, city: str) -> str:
        if city == "Atlantis":
            raise ValueError("there is no such city any more")
        return city


class Exact(BaseModel, extra="forbid"):
    path: str


class Branch(BaseModel):
    name: str
    branches: list[Branch] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


@tool
def book(
    place: Place,
    nights: Annotated[int, Field(ge=1, le=30, description="How many nights.")],
    room: Literal["single", "suite"] = "single",
    guests: list[str] | None = None,
    budget: int | list[int] = 0,
    when: datetime.date | None = None,
    colour: Colour = Colour.RED,
    prices: dict[str, float] | None = None,
    tree: Branch | None = None,
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    code: Annotated[str, Field(pattern="^[a-z]+$", min_length=2)] = "ab",
    files: list[Exact] | None = None,
) -> None:
    """Book a place."""


GOOD: dict[str, Any] = {"place": {"city": "Rome"}, "nights": 2}
PARAMETERS = "place (required), nights (required), room, guests, budget, when, colour, prices, tree, pet, code, files"


def problems(**arguments: object) -> str:
    """What is told of these arguments beside good ones, without what is told each time."""
    return error_text({**GOOD, **arguments})


def error_text(arguments: dict[str, Any]) -> str:
    with pytest.raises(BadArguments) as caught:
        book.validate(arguments)
    text = str(caught.value)
    text.encode()
    before, after = "the arguments of book are wrong: ", f". Its parameters are: {PARAMETERS}"
    assert text.startswith(before)
    assert text.endswith(after)
    return text.removeprefix(before).removesuffix(after)


def test_the_whole_says_what_is_wrong_and_which_parameters_there_are() -> None:
    @tool
    def price(dish: str, size: int = 1) -> None:
        """Say what a dish costs.

        Args:
            dish: Its name on the card.
        """

    with pytest.raises(BadArguments) as caught:
        price.validate({"dishes": "soup"})
    assert str(caught.value) == snapshot(
        "the arguments of price are wrong: dish: missing, expected a string (Its name on the card); "
        "dishes: there is no such parameter (did you mean `dish`?). Its parameters are: dish (required), size"
    )


def test_what_is_missing_is_described() -> None:
    assert error_text({}) == snapshot(
        "place: missing, expected an object with city (required), title; "
        "nights: missing, expected an integer, at least 1, at most 30 (How many nights)"
    )
    assert problems(place={"title": "x"}) == snapshot("place.city: missing, expected a string")


def test_what_is_unknown_is_told_the_closest_there_is() -> None:
    assert problems(Guest=1) == snapshot("Guest: there is no such parameter (did you mean `guests`?)")
    assert problems(zzz=1) == snapshot("zzz: there is no such parameter")
    assert problems(files=[{"path": "a"}, {"path": "b", "paht": "c"}]) == snapshot(
        "files[1].paht: there is no such parameter (did you mean `path`?)"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"nights": "two"}, snapshot('nights: given "two" (a string), expected an integer, at least 1, at most 30')),
        ({"nights": 0}, snapshot("nights: given 0 (an integer), expected an integer, at least 1, at most 30")),
        ({"nights": 2.5}, snapshot("nights: given 2.5 (a number), expected an integer, at least 1, at most 30")),
        ({"nights": None}, snapshot("nights: given null, expected an integer, at least 1, at most 30")),
        ({"room": "tent"}, snapshot('room: given "tent" (a string), expected one of "single", "suite"')),
        ({"colour": "green"}, snapshot('colour: given "green" (a string), expected one of "red", "blue"')),
        ({"place": "Rome"}, snapshot('place: given "Rome" (a string), expected an object with city (required), title')),
        (
            {"place": {"city": "Atlantis"}},
            snapshot('place.city: there is no such city any more, given "Atlantis" (a string)'),
        ),
        ({"guests": ["a", 3]}, snapshot("guests[1]: given 3 (an integer), expected a string")),
        ({"guests": {}}, snapshot("guests: given {} (an object), expected a list, each of it a string, or null")),
        (
            {"budget": "x"},
            snapshot('budget: given "x" (a string), expected an integer, or a list, each of it an integer'),
        ),
        ({"prices": {"a": "b"}}, snapshot('prices.a: given "b" (a string), expected a number')),
        (
            {"tree": {"name": "x", "branches": [{"name": 1}]}},
            snapshot("tree.branches[0].name: given 1 (an integer), expected a string"),
        ),
        (
            {"pet": {"kind": "fish"}},
            snapshot(
                'pet: given {"kind":"fish"} (an object), expected an object with kind="cat" (required), lives (required), or an object with kind="dog" (required), or null'
            ),
        ),
        ({"pet": {"kind": "cat", "lives": "x"}}, snapshot('pet.lives: given "x" (a string), expected an integer')),
        (
            {"code": "A"},
            snapshot('code: given "A" (a string), expected a string, at least 2 characters, that matches ^[a-z]+$'),
        ),
    ],
)
def test_what_does_not_fit_is_shown_beside_what_would(arguments: dict[str, Any], says: str) -> None:
    assert problems(**arguments) == says


def test_a_date_says_what_is_wrong_with_it() -> None:
    assert problems(when="soon") == snapshot(
        'when: given "soon" (a string), expected a string, in the format date, or null'
    )


def test_each_place_is_told_of_once_and_not_too_many_of_them() -> None:
    text = problems(**{f"x{n}": n for n in range(MOST_PROBLEMS + 4)})
    assert text.count("there is no such parameter") == MOST_PROBLEMS
    assert text.endswith("; and 4 more")


def test_what_was_given_is_shown_in_part() -> None:
    text = problems(nights="x" * 10_000, guests=[["y" * 10_000]])
    assert text.count("…") == 2
    assert len(text) < 2 * LONGEST_EXCERPT + 200


@pytest.mark.parametrize("value", [float("nan"), 2**80, {1, 2}, object(), "\ud800", {"\ud800": 1}, [object()]])
def test_what_cannot_be_written_down_does_not_stop_the_telling(value: object) -> None:
    assert "nights" in problems(nights=value) or "arguments" in problems(nights=value)


def test_no_words_of_the_validator_reach_the_model() -> None:
    bad = {"place": 1, "nights": [], "room": 1, "guests": 1, "budget": {}, "when": [], "colour": 1, "prices": 1}
    text = error_text({**bad, "tree": [], "pet": 1, "code": 1, "files": [1]})
    for word in (
        "http",
        "pydantic",
        "instance",
        "Place",
        "Branch",
        "Colour",
        "list[",
        "Extra inputs",
        "Field required",
    ):
        assert word not in text


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]}}}
    spec = ToolSpec("odd", "", {"properties": {"a": schema}, **schema})
    assert explain_validation_errors(
        spec, [ValidationProblem("string_type", ("a",), "Input should be a string", 1)]
    ).startswith("the arguments of odd")
