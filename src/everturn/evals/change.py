"""Change: what differs from the recordings in an evaluation: instructions, rules, parameters, the model's name.

`change.toml`:

    system = "Be brief."            # or: system_file = "prompt.md"
    permissions = "rules.toml"      # the rules of the app, instead of those that it had
    params = { temperature = 0 }
    max_steps = 5
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.options import TurnOptions
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError

KEYS: Final = ("system", "system_file", "permissions", "params", "max_steps", "model")


class EvalChange(Struct, frozen=True):
    """What differs from the recording. None: as recorded."""

    system: str | None = None
    rules: Sequence[Rule] | None = None  # of the app
    own_rules: Sequence[Rule] | None = None  # of the agent, or the session
    params: dict[str, Any] = {}
    max_steps: int | None = None
    model: str = ""  # the name of the model to ask; "": the recorded answers

    @property
    def is_empty(self) -> bool:
        """Whether everything is as recorded."""
        return self == EvalChange()

    @property
    def for_models(self) -> tuple[str, ...]:
        """What of the change only a model can answer: with recorded answers it is not tested."""
        return (*(("instructions",) if self.system is not None else ()), *(("parameters",) if self.params else ()))

    def apply(self, options: TurnOptions, is_live: bool = False) -> TurnOptions:
        """Return the options of a turn with the change; a model that is asked is the default of its app."""
        if self.system is not None:
            options = replace(options, system=self.system)
        if self.own_rules is not None:
            options = replace(options, rules=tuple(self.own_rules))
        if self.max_steps is not None:
            options = replace(options, max_steps=self.max_steps)
        return replace(options, model="") if is_live else options

    @classmethod
    def read(cls, path: str | Path) -> EvalChange:
        """Read a change from a TOML file; files that it names are beside it.

        Raises:
            ConfigError: the file cannot be read, or has a key that does not exist.
        """
        path = Path(path)
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path}: the change cannot be read: {error}") from error
        if unknown := [key for key in values if key not in KEYS]:
            raise ConfigError(f"{path}: there is no key {unknown[0]!r}; there are: {', '.join(KEYS)}")
        if "system" in values and "system_file" in values:
            raise ConfigError(f"{path}: use system or system_file, not both")
        return cls(
            values.get("system", _text_beside(path, values.get("system_file"))),
            _rules_beside(path, values.get("permissions")),
            None,
            dict(values.get("params", {})),
            values.get("max_steps"),
            str(values.get("model", "")),
        )


def _text_beside(path: Path, name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return (path.parent / name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{path}: system_file {name} cannot be read: {error}") from error


def _rules_beside(path: Path, name: str | None) -> Sequence[Rule] | None:
    if name is None:
        return None
    from everturn.permissions.rules_file import load_rules

    return load_rules(str(path.parent / name))
