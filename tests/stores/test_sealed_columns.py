"""The list of sealed columns is complete: every statement that reads or writes one of them is in it."""

import importlib
import pkgutil
import re

import everturn.stores.sql as package
from everturn.stores.sql.database import Statement
from everturn.stores.sql.sealed_columns import SEALED

# They name a sealed column, and neither write nor return its content.
WITHOUT_CONTENT = {
    "sessions_of_user": "looks into plain bodies; with encryption `_names_user` does that",
    "search_tenant": "uses the index of terms, which is empty with encryption",
    "search_user": "the same",
    "search_reader": "the same",
    "search": "the same",
    "search_newest": "the same",
    "touch_blob": "has the stored name already, as all statements about blobs",
    "put_blob": "the same; `EncryptedBlobs` encrypts the content",
    "blob": "the same",
    "sweep_blobs": "returns stored names, and content only to find the name of a file",
    "erase_blob": "the same",
    "file_of_blob": "returns the name of a file",
    "erase_bury": "empties the title",
    "erase_mentioned": "returns stored names",
    "old_marks": "counts",
    "surplus_marks": "counts",
    **dict.fromkeys(("unclaimed", "waiting", "overdue", "tally"), "ask whether a gate has a resolution"),
}


def statements() -> dict[str, Statement]:
    found: dict[str, Statement] = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Statement):
                    assert found.setdefault(each.name, each) == each, f"two statements are named {each.name!r}"
    return found


def test_every_statement_about_a_sealed_column_is_listed() -> None:
    columns = {(c.table, c.column) for sealed in SEALED.values() for c in (*sealed.writes, *sealed.reads)}
    unlisted = {
        name
        for name, statement in statements().items()
        for table, column in columns
        for text in (statement.sqlite, re.sub(r"::\w+", "", statement.postgres))  # a cast to text is no column
        if re.search(rf"\b{table}\b", text) and re.search(rf"\b{column}\b", text)
    } - SEALED.keys()
    assert unlisted == WITHOUT_CONTENT.keys()


def test_every_listed_statement_exists_and_has_the_columns_that_are_said() -> None:
    known = statements()
    for name, sealed in SEALED.items():
        for column in (*sealed.writes, *sealed.reads):
            assert re.search(rf"\b{column.column}\b", known[name].sqlite), (name, column)
            if known[name].postgres:  # a statement may be for SQLite alone
                assert re.search(rf"\b{column.column}\b", known[name].postgres), (name, column)
        parameters = [column.at for column in sealed.writes]
        count = max((int(number) for number in re.findall(r"\$(\d+)", known[name].postgres)), default=0)
        assert all(at < count for at in parameters), name
