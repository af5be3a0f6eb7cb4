"""The messages of the campaign: eight facts among the first ones, small talk, and a question for each fact at the end."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Fact(Struct, frozen=True):
    """Something the person says once. `key` is what a request or an answer must contain to have it."""

    kind: str
    key: str
    said: str
    question: str


FACTS: Final = (
    Fact(
        "goal",
        "Ravensholm",
        "My goal: move the catalogue of the Ravensholm library from paper cards to a database before March.",
        "For which library do we move the catalogue?",
    ),
    Fact(
        "constraint",
        "read-only",
        "A constraint: the old scans are read-only, so nothing may ever write to them.",
        "What is the constraint on the old scans?",
    ),
    Fact(
        "quote",
        "the heron sleeps at the third lock",
        'Keep this sentence word for word: "The heron sleeps at the third lock."',
        "Which sentence did I ask you to keep word for word?",
    ),
    Fact(
        "path",
        "/opt/tarn/loader.yaml",
        "The settings of the import are in /opt/tarn/loader.yaml.",
        "In which file are the settings of the import?",
    ),
    Fact(
        "number",
        "48117",
        "There are 48117 cards in the drawers, I counted them.",
        "How many cards are in the drawers?",
    ),
    Fact(
        "correction",
        "alder",
        "I was wrong before: the machine is called alder, not birch.",
        "What is the machine called?",
    ),
    Fact(
        "failed attempt",
        "--jobs 8",
        "I tried the import with --jobs 8 and it ran out of memory. Do not suggest that again.",
        "Which option of the import ran out of memory?",
    ),
    Fact(
        "rule",
        "Captain Quill",
        "A rule for every answer from now on: call me Captain Quill.",
        "By which name should you call me?",
    ),
)

MISTAKE: Final = "The machine that does the import is called birch."  # what the correction corrects

BRIEF, OK = "Answer in five words: ", " Just say OK."  # a small model goes on and on, and a busy machine is slow

TOPICS: Final = (
    "What is a database table?",
    "What is a primary key?",
    "What does an index do?",
    "What is a good name for a column with the year of a book?",
    "Give me one reason to keep authors in a table of their own.",
    "What does a foreign key do?",
    "How would you store a book with two authors?",
    "Name three things that a catalogue card usually shows.",
    "What is an ISBN?",
    "Do old books have an ISBN?",
    "How can a person notice that two cards describe the same book?",
    "What is a backup?",
    "How often should a small library make backups?",
    "What is a transaction?",
    "What is a typing error called that swaps two letters?",
    "Give an example of a date that can be read in two ways.",
    "How should we write dates so that nobody misreads them?",
    "What is UTF-8?",
    "Why do some letters look broken after an import?",
    "What does a librarian do?",
    "What would you check on the first ten cards?",
    "How long does it take to type one card?",
    "What is a test import?",
    "What could go wrong with water damaged cards?",
    "How do I sort titles that begin with The?",
    "Name two kinds of covers of a book.",
    "What is a shelf mark?",
    "Write one sentence that thanks the helpers.",
    "What is a view in a database?",
    "Should a reader be able to change a record?",
    "What is a log file good for?",
    "What is a checksum?",
    "How can we find cards that nobody has typed yet?",
    "What does NULL mean?",
    "Is an unknown year the same as year zero?",
    "What is the difference between a title and a subtitle?",
    "Name a language that is written from right to left.",
    "How do I count the books of one author?",
    "What is a search index?",
    "Suggest a colour for the labels.",
    "What should we print on a label?",
    "How do we tell the readers that the catalogue has moved?",
    "Write a short notice for the door.",
    "What would you do on the last day before the opening?",
    "Say something kind to a tired colleague.",
    "What is a good first page for a catalogue?",
    "How big should the letters on the screen be?",
    "What is a keyboard shortcut?",
    "Name one risk that we have not talked about.",
    "What is the next step?",
    "How do we celebrate at the end?",
)


def messages(count: int) -> list[str]:
    """The messages of a conversation of this length: the facts are among the first, of which two in three have one."""
    texts = [FACTS[0].said + OK, BRIEF + TOPICS[0], MISTAKE + OK]
    topics = (BRIEF + topic for topic in TOPICS[1:])
    for fact in FACTS[1:]:
        texts.append(fact.said + OK)
        if fact.kind in ("quote", "correction"):
            texts.append(next(topics))
    texts = texts[:count]
    while len(texts) < count:
        texts.append(next(topics))
    return texts
