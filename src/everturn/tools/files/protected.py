"""A path → why a model may not read or write it: keys and secrets, and files that make other programs do something.

A pattern is one of paths (`**/` for any depth), compared without case and look-alikes; it holds for all that is beneath
what it fits, and whether that is there or not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.globs import Fits, fold, fold_tokens, path_glob, tokens_of
from everturn.errors import BadArguments, ConfigError
from everturn.sandbox.keeping import is_repository
from everturn.tools.files.paths import shown

SECRETS: Final = (
    *("**/.env*", "**/*.pem", "**/*.p12", "**/*.pfx", "**/*.jks", "**/*.keystore", "**/*.key", "**/*.kdbx"),
    *("**/id_rsa*", "**/id_dsa*", "**/id_ecdsa*", "**/id_ed25519*", "**/.ssh", "**/.gnupg", "**/.aws", "**/.azure"),
    *(
        "**/.kube",
        "**/.docker/config.json",
        "**/.config/gcloud",
        "**/.config/gh",
        "**/.netrc",
        "**/_netrc",
        "**/.npmrc",
    ),
    *("**/.pypirc", "**/.pgpass", "**/.my.cnf", "**/.htpasswd", "**/.git-credentials", "**/.git/config"),
    *("**/.git/credentials", "**/git~?/config"),
    *(
        "**/.everturn",
        "**/.everturn-quarantine*",
        "**/.config/everturn",
        "**/.local/state/everturn",
    ),  # our own: tokens, trust, snapshots
)
"""What is neither read nor written."""

STARTERS: Final = (
    *("**/.git", "**/git~?", "**/.gitmodules", "**/.gitconfig", "**/.husky", "**/.pre-commit-config.yaml"),
    *("**/everturn.toml", "**/.mcp.json", "**/mcp.json", "**/.vscode", "**/.idea", "**/.devcontainer"),
    *("**/.github/workflows", "**/.github/actions", "**/.gitlab-ci.yml", "**/.circleci", "**/jenkinsfile"),
    *("**/.bashrc", "**/.bash_*", "**/.profile", "**/.zshrc", "**/.zshenv", "**/.zprofile", "**/.zlog*", "**/.kshrc"),
    *("**/.cshrc", "**/.tcshrc", "**/.login", "**/.inputrc", "**/.config/fish", "**/.config/autostart"),
    *("**/.config/systemd", "**/.vimrc", "**/.exrc"),
    *("**/CLAUDE.md", "**/CLAUDE.local.md", "**/.claude", "**/AGENTS.md", "**/AGENTS.override.md", "**/GEMINI.md"),
    *("**/.cursor", "**/.cursorrules", "**/.windsurfrules", "**/.clinerules", "**/.github/copilot-instructions.md"),
)
"""What is read, and not written: other programs take it as their orders."""


REPOSITORY: Final = ("HEAD", "objects", "refs", "commondir")
"""By these git knows a repository, where it is not called `.git`."""


class Protected(Struct, frozen=True):
    """Which paths are kept from a model. What fits `open` is not, whatever else it fits."""

    secrets: tuple[str, ...] = SECRETS
    starters: tuple[str, ...] = STARTERS
    open: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("secrets", "starters", "open"):
            given: object = getattr(self, name)
            if not isinstance(given, tuple) or not all(isinstance(pattern, str) and pattern for pattern in given):  # pyright: ignore[reportUnknownVariableType]
                raise ConfigError(f'{name}={given!r}: it is a tuple of patterns: ("**/.env*",)')

    def also(self, *, secrets: Iterable[str] = (), starters: Iterable[str] = ()) -> Protected:
        """The same, and more."""
        return replace(self, secrets=(*self.secrets, *secrets), starters=(*self.starters, *starters))

    def but(self, *patterns: str) -> Protected:
        """The same, but for what fits these: `PROTECTED.but("**/.env.example", ".github/workflows")`."""
        return replace(self, open=(*self.open, *patterns))

    def keeps(self, path: str, *, writing: bool) -> str:
        """The pattern by which this path is kept from being read (or written); nothing if it is not."""
        forms = _forms(path)
        if self.open and _first(self.open, forms):
            return ""
        return _first(self.secrets, forms) or (_first(self.starters, forms) if writing else "")

    def check(self, path: str, *, writing: bool) -> None:
        """Refuse what is protected.

        Raises:
            BadArguments: it is.
        """
        if pattern := self.keeps(path, writing=writing):
            what = "written" if writing else "read"
            raise BadArguments(
                f"{shown(path)} is protected ({pattern}) and is not {what} by tools, whether it is there or not; "
                "leave it alone, or ask the person to do it"
            )

    def check_repository(self, path: str, exists: Callable[[str], bool]) -> None:
        """Refuse to write what makes a folder a repository of git's, or lies in one: git obeys the settings in it, whatever
        it is called.

        Raises:
            BadArguments: it does.
        """
        parts = path.split("/")
        for size in range(len(parts)):
            at = "/".join(parts[:size])
            begin = f"{at}/" if at else ""
            if not self.keeps(f"{begin}.git", writing=True):
                continue
            there = {name for name in REPOSITORY if fold(name) == fold(parts[size]) or exists(begin + name)}
            if is_repository(there):
                raise BadArguments(
                    f"{shown(path)} is not written: with it, {shown(at or '.')} is a git repository (HEAD, objects, refs), "
                    "and git does what the settings in one say; take other names, or ask the person to do it"
                )


PROTECTED: Final = Protected()
NOTHING: Final = Protected((), ())


def _forms(path: str) -> tuple[str, ...]:
    """The path and all it is beneath, each as it is compared. Some disks drop characters nobody sees, so we do too."""
    seen = path if path.isascii() else "".join(char for char in path if unicodedata.category(char) != "Cf")
    parts = fold(seen).split("/")
    return tuple("/".join(parts[:size]) for size in range(len(parts), 0, -1))


def _first(patterns: tuple[str, ...], forms: tuple[str, ...]) -> str:
    return next((pattern for pattern in patterns if any(map(_fits(pattern), forms))), "")


@lru_cache(1024)
def _fits(pattern: str) -> Fits:
    return path_glob(fold_tokens(tokens_of(pattern.removesuffix("/**").strip("/"))))
