"""Protected paths: keys and secrets, which a model may not read, and files that make other programs act, which it may
not write.

A pattern matches paths (`**/` for any depth), without regard to case and look-alike characters; it applies to
everything below what it matches, whether that exists or not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.rules.globs import TextMatcher, compile_path_glob, fold_text, fold_tokens, parse_glob
from everturn.errors import BadArguments, ConfigError
from everturn.sandbox.hidden_paths import is_repository
from everturn.tools.files.paths import quote_path

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
    ),  # Everturn's own: tokens, trust, snapshots
)
"""Neither read nor written."""

WRITE_PROTECTED: Final = (
    *("**/.git", "**/git~?", "**/.gitmodules", "**/.gitconfig", "**/.husky", "**/.pre-commit-config.yaml"),
    *(
        "**/everturn.toml",
        "**/.mcp.json",
        "**/mcp.json",
        "**/opencode.json",
        "**/opencode.jsonc",
        "**/.vscode",
        "**/.idea",
        "**/.devcontainer",
    ),
    *("**/.github/workflows", "**/.github/actions", "**/.gitlab-ci.yml", "**/.circleci", "**/jenkinsfile"),
    *("**/.bashrc", "**/.bash_*", "**/.profile", "**/.zshrc", "**/.zshenv", "**/.zprofile", "**/.zlog*", "**/.kshrc"),
    *("**/.cshrc", "**/.tcshrc", "**/.login", "**/.inputrc", "**/.config/fish", "**/.config/autostart"),
    *("**/.config/systemd", "**/.vimrc", "**/.exrc"),
    *(
        "**/CLAUDE.md",
        "**/CLAUDE.local.md",
        "**/.claude",
        "**/.agents",
        "**/.opencode",
        "**/AGENTS.md",
        "**/AGENTS.override.md",
        "**/GEMINI.md",
    ),
    *("**/.cursor", "**/.cursorrules", "**/.windsurfrules", "**/.clinerules", "**/.github/copilot-instructions.md"),
)
"""Read, but not written: other programs take instructions from these files."""


REPOSITORY_MARKERS: Final = ("HEAD", "objects", "refs", "commondir")
"""Git recognizes a repository by these, also where it is not called `.git`."""


class ProtectedPaths(Struct, frozen=True):
    """The paths that a model may not read or write. Paths that match `open` are exempt, whatever else they match."""

    secrets: tuple[str, ...] = SECRETS
    write_protected: tuple[str, ...] = WRITE_PROTECTED
    exempt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("secrets", "write_protected", "exempt"):
            patterns: object = getattr(self, name)
            if not isinstance(patterns, tuple) or not all(isinstance(pattern, str) and pattern for pattern in patterns):  # pyright: ignore[reportUnknownVariableType]
                raise ConfigError(f'{name}={patterns!r}: it must be a tuple of patterns: ("**/.env*",)')

    def adding(self, *, secrets: Iterable[str] = (), write_protected: Iterable[str] = ()) -> ProtectedPaths:
        """The same, and more."""
        return replace(
            self, secrets=(*self.secrets, *secrets), write_protected=(*self.write_protected, *write_protected)
        )

    def excluding(self, *patterns: str) -> ProtectedPaths:
        """The same, except for what matches these: `PROTECTED.but("**/.env.example", ".github/workflows")`."""
        return replace(self, exempt=(*self.exempt, *patterns))

    def matching_pattern(self, path: str, *, writing: bool) -> str:
        """The pattern that protects this path from being read (or written), or ""."""
        forms = _forms(path)
        if self.exempt and _first(self.exempt, forms):
            return ""
        return _first(self.secrets, forms) or (_first(self.write_protected, forms) if writing else "")

    def check(self, path: str, *, writing: bool) -> None:
        """Refuse a protected path.

        Raises:
            BadArguments: the path is protected.
        """
        if pattern := self.matching_pattern(path, writing=writing):
            verb = "written" if writing else "read"
            raise BadArguments(
                f"{quote_path(path)} is protected ({pattern}) and is not {verb} by tools, whether it exists or "
                "not; leave it alone, or ask the user to do it"
            )

    def check_repository(self, path: str, exists: Callable[[str], bool]) -> None:
        """Refuse to write a file that turns a folder into a git repository, or lies in one: git obeys the settings in a
        repository, whatever its folder is called.

        Raises:
            BadArguments: the path is such a file.
        """
        parts = path.split("/")
        for size in range(len(parts)):
            at = "/".join(parts[:size])
            begin = f"{at}/" if at else ""
            if not self.matching_pattern(f"{begin}.git", writing=True):
                continue
            markers = {
                name for name in REPOSITORY_MARKERS if fold_text(name) == fold_text(parts[size]) or exists(begin + name)
            }
            if is_repository(markers):
                raise BadArguments(
                    f"{quote_path(path)} is not written: with it, {quote_path(at or '.')} would be a git "
                    "repository (HEAD, objects, refs), and git runs commands from the settings of a repository; "
                    "choose other names, or ask the user to do it"
                )


PROTECTED: Final = ProtectedPaths()
UNPROTECTED: Final = ProtectedPaths((), ())


def _forms(path: str) -> tuple[str, ...]:
    """The path and its parents, normalized for comparison. Some file systems drop invisible characters, so these are
    dropped.
    """
    seen = path if path.isascii() else "".join(char for char in path if unicodedata.category(char) != "Cf")
    parts = fold_text(seen).split("/")
    return tuple("/".join(parts[:size]) for size in range(len(parts), 0, -1))


def _first(patterns: tuple[str, ...], forms: tuple[str, ...]) -> str:
    return next((pattern for pattern in patterns if any(map(_fits(pattern), forms))), "")


@lru_cache(1024)
def _fits(pattern: str) -> TextMatcher:
    return compile_path_glob(fold_tokens(parse_glob(pattern.removesuffix("/**").strip("/"))))
