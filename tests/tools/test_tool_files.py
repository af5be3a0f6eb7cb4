"""Files with tools: two of the same name have two module names, and screens show the file and the function."""

from pathlib import Path

import pytest

from everturn.terminal.text.tool_loader import load_tools
from everturn.tools.tool_files import describe_origin, module_name_of


def test_files_of_the_same_name_in_two_folders_have_two_module_names(tmp_path: Path):
    assert module_name_of(tmp_path / "a" / "mail.py") != module_name_of(tmp_path / "b" / "mail.py")


def test_screens_name_the_file_and_the_function(tmp_path: Path):
    path = tmp_path / "my_mail_2.py"
    path.write_text("from everturn import tool\n\n@tool\ndef send(to: str) -> str:\n    return to\n")

    (loaded,) = load_tools([str(path)])

    assert describe_origin(loaded.spec.origin) == "send in my_mail_2.py"


@pytest.mark.parametrize("origin", ["function:shop.send_mail", "mcp:tickets", "", "function:everturn_tools_x"])
def test_other_origins_stay_as_they_are(origin: str):
    assert describe_origin(origin) == origin
