"""What the pages on installing say is what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

from everturn.cli.commands import doctor
from everturn.cli.doctor import checks
from everturn.config.layers import SYSTEM_FILE, user_file
from everturn.config.tools import data_folder, state_folder

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_the_guide_has_every_section_and_every_state_of_the_doctor() -> None:
    rows = re.findall(r"^\| `?(\w+)`? \|", page("terminal/doctor"), re.MULTILINE)
    assert [row for row in rows if row in doctor.ORDER] == list(doctor.ORDER)
    assert [row for row in rows if row in get_args(checks.State)] == list(get_args(checks.State))


def test_the_guide_has_every_extra_and_no_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = "\n".join(line.split("|")[1] for line in page("get-started/install").splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`everturn\[([\w-]+)\]`", rows)) | set(re.findall(r"`([a-z-]+)`", rows)) - {"everturn"}
    assert named == set(project["optional-dependencies"])


def test_things_lie_where_the_guide_says() -> None:
    home = {"HOME": "/home/ada"}
    places = [user_file(home), SYSTEM_FILE, data_folder(home) / "everturn.db", data_folder(home) / "operator.token"]
    for place in [*map(str, places), f"{state_folder(home)}/"]:
        assert f"`{place.replace('/home/ada', '~')}`" in page("get-started/install")


def test_the_first_lines_of_the_readme_are_those_of_the_guide() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (first,) = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)[:1]
    commands = [line.partition("#")[0].strip() for line in first.splitlines()]
    assert commands == ["pip install 'everturn[all]'", "everturn", "everturn serve"]
    assert all(f"\n{command}\n" in page("get-started/install") for command in commands[:2])
