"""`[[schedules]]`: what a file may say, and how its schedules come into a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.load import load_config
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE

FILE = """
[[schedules]]
id = "weekly"
text = "Write the report."
cron = "0 9 * * 1"
timezone = "Europe/Berlin"
catch_up = "all"
max_catch_up = 3

[[schedules]]
id = "once"
text = "Now."
at = "2099-12-01T09:00:00+01:00"
"""


async def test_the_schedules_of_a_file_are_those_of_the_store(tmp_path: Path) -> None:
    file, overrides = tmp_path / "e.toml", CommandLineOverrides(store=str(tmp_path / "a.db"), model=OFFLINE)
    file.write_text(FILE)
    async with open_server(load_config(str(file), {}), overrides, {}) as context:
        found = {row.id: row for row in await context.schedules.list()}
        assert [*found] == ["once", "weekly"]
        assert (found["weekly"].catch_up, found["weekly"].max_catch_up, found["weekly"].origin) == ("all", 3, "config")
        assert found["once"].due == found["once"].at
        await context.schedules.create("Mine.", id="mine", cron="0 9 * * *")
    file.write_text(FILE.partition("\n\n[[schedules]]")[0])
    async with open_server(load_config(str(file), {}), overrides, {}) as context:
        assert [row.id for row in await context.schedules.list()] == ["mine", "weekly"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('cron = "0 9 * *"', "five fields"),
        ('cron = "0 9 * * 1"\ntimezone = "Mars/Base"', "IANA"),
        ('at = "2099-12-01T09:00:00"', "offset"),
        ('at = "tomorrow"', "offset"),
        ('cron = "0 9 * * 1"\ncatch_up = "twice"', "catch_up"),
        ('cron = "0 9 * * 1"\ntenant = "nobody"', "no tenant 'nobody'"),
        ('cron = "0 9 * * 1"\ncorn = "x"', "corn"),
        ('cron = "0 9 * * 1"\n[[schedules]]\nid = "a"\ntext = "y"\ncron = "0 9 * * 1"', "two schedules"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "e.toml"
    file.write_text(f'[[schedules]]\nid = "a"\ntext = "x"\n{line}\n')
    with pytest.raises(ConfigError, match=problem) as error:
        load_config(str(file), {})
    assert "e.toml:" in str(error.value)
