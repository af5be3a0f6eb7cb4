"""The profile for macOS: what it allows, read by a reader of our own, and paths that try to be a rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.sbpl import Profile, read

from everturn.errors import ToolError
from everturn.sandbox.hidden_paths import HiddenPaths
from everturn.sandbox.seatbelt_profile import SeatbeltPolicy, quote_sbpl, seatbelt_profile

HOME = "/Users/ada"
FOLDER = f"{HOME}/work/shop"
SCRATCH = "/private/var/folders/xy/T/everturn-1/tmp"
PROTECTED = HiddenPaths(
    hidden_files=("sub/.env",),
    hidden_folders=("keys/.ssh",),
    empty_files=(".git/config",),
    read_only=(".git", "docs/.vscode"),
)


def profile(**changes: object) -> Profile:
    """The profile of the folder, as a reader understands it."""
    known = {"scratch": SCRATCH, "folder": FOLDER, "writable": True, "home": HOME, "protected": PROTECTED}
    return Profile(seatbelt_profile(SeatbeltPolicy(**{**known, **changes})))  # type: ignore[arg-type]


READABLE = (
    *("/usr/bin/git", "/System/Library/dyld/cache", "/opt/homebrew/bin/python3", f"{FOLDER}/a.txt", f"{SCRATCH}/x"),
    *(f"{FOLDER}/.git/HEAD", "/dev/null", "/private/etc/hosts", "/private/var/db/dyld/x"),
)
UNREADABLE = (
    *(f"{HOME}/.ssh/id_ed25519", f"{HOME}/work/other/a.txt", "/Users/bob/a", "/Volumes/Stick/a", "/private/tmp/other"),
    *("/Library/Keychains/System.keychain", f"{HOME}/Library/Keychains/login.keychain-db", "/dev/ttys001"),
    *(f"/System/Volumes/Data{HOME}/.ssh/id_ed25519", "/private/var/folders/xy/T/other", "/private/var/db/x"),
    *(f"{FOLDER}/sub/.env", f"{FOLDER}/keys/.ssh/id", f"{FOLDER}/.git/config", "/private/etc/sudoers"),
)
UNWRITABLE = (
    *(f"{HOME}/.zshrc", f"{HOME}/work/other/a.txt", "/private/tmp/x", "/opt/homebrew/bin/git", "/usr/local/bin/git"),
    *(f"{FOLDER}/.git/hooks/pre-commit", f"{FOLDER}/docs/.vscode/tasks.json", f"{FOLDER}/sub/.env"),
    *(f"{FOLDER}-2/a.txt", "/private/var/folders/xy/T/everturn-1/profile.sb", "/dev/disk0"),
)


def test_the_machine_and_the_folder_can_be_read_and_places_of_people_cannot() -> None:
    sandbox_profile = profile()
    assert [path for path in READABLE if not sandbox_profile.allows("file-read-data", path)] == []
    assert [path for path in UNREADABLE if sandbox_profile.allows("file-read-data", path)] == []
    assert sandbox_profile.allows("file-read-metadata", f"{FOLDER}/sub/.env"), "git compares it with its index"
    assert sandbox_profile.allows("file-read-metadata", HOME)
    assert not sandbox_profile.allows("file-read-metadata", f"{HOME}/.ssh")


def test_only_the_folder_and_its_temporary_folder_can_be_written() -> None:
    sandbox_profile = profile()
    assert [path for path in UNWRITABLE if sandbox_profile.allows("file-write-data", path)] == []
    assert all(
        sandbox_profile.allows("file-write-data", path) for path in (f"{FOLDER}/a.txt", f"{SCRATCH}/x", "/dev/null")
    )
    assert not profile(writable=False).allows("file-write-data", f"{FOLDER}/a.txt")
    assert not profile(folder="", protected=HiddenPaths()).allows("file-write-data", f"{FOLDER}/a.txt")


def test_a_protected_path_keeps_its_name_and_gets_no_second_one() -> None:
    sandbox_profile = profile()
    names = (".git", "sub", "keys", "docs", "sub/.env", "keys/.ssh", "docs/.vscode")
    assert [name for name in names if sandbox_profile.allows("file-write-unlink", f"{FOLDER}/{name}")] == []
    assert not sandbox_profile.allows("file-write-unlink", FOLDER)
    assert sandbox_profile.allows("file-write-unlink", f"{FOLDER}/sub/other")
    assert not sandbox_profile.allows("file-link", f"{FOLDER}/a.txt")
    assert not sandbox_profile.allows("file-clone", f"{FOLDER}/a.txt")


def test_other_processes_services_and_the_network_are_out_of_reach() -> None:
    sandbox_profile = profile()
    assert not sandbox_profile.allows("network-outbound", "localhost:8080", "remote")
    assert not sandbox_profile.allows("process-info-listpids", "others", "target")
    assert sandbox_profile.allows("process-info-pidinfo", "same-sandbox", "target")
    assert not sandbox_profile.allows("signal", "others", "target")
    assert not sandbox_profile.allows("nvram-get")
    for service in ("com.apple.SecurityServer", "com.apple.securityd.xpc", "com.apple.coreservices.launchservicesd"):
        assert not sandbox_profile.allows("mach-lookup", service, "global-name")
    for other in ("appleevent-send", "lsopen", "mach-register", "iokit-open", "user-preference-read", "ipc-posix-shm"):
        assert not sandbox_profile.allows(other)


def test_with_a_proxy_its_port_is_the_only_address() -> None:
    sandbox_profile = profile(proxy_port=8080)
    assert sandbox_profile.allows("network-outbound", "localhost:8080", "remote")
    assert not sandbox_profile.allows("network-outbound", "localhost:80800", "remote")
    assert not sandbox_profile.allows("network-outbound", "localhost:22", "remote")
    assert not sandbox_profile.allows("network-bind", "localhost:8080", "remote")


ATTACKS = (
    *(
        '/Users/ada/a")) (allow default) (deny file-read* (literal "/x',
        '/Users/ada/"',
        "/Users/ada/\\",
        '/Users/ada/\\"',
    ),
    *("/Users/ada/a\\\\", "/Users/ada/; (allow default)", "/Users/ada/#|", "/Users/ada/(a)", "/Users/ada/ä 猫 🙂"),
    *('/Users/ada/\\n")', "/Users/ada/\\x22)", "/Users/ada/'", "/Users/ada/$(id)", "/Users/ada/a b"),
)


@pytest.mark.parametrize("path", ATTACKS)
def test_a_path_is_one_string_whatever_is_in_it(path: str) -> None:
    assert read(quote_sbpl(path)) == [path]
    sandbox_profile = profile(folder=path, protected=HiddenPaths(hidden_files=(f'{path[1:]}"',)))
    assert sandbox_profile.allows("file-write-data", f"{path}/a")
    assert not sandbox_profile.allows("file-read-data", f'{path}/{path[1:]}"')
    assert not sandbox_profile.allows("file-read-data", f"{HOME}/.ssh")
    assert not sandbox_profile.allows("file-write-data", "/etc/x")


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1))
def test_every_path_without_control_characters_is_read_as_it_was(name: str) -> None:
    path = f"/x{name}"
    try:
        quoted = quote_sbpl(path)
    except ToolError:
        assert "/" in name
    else:
        assert read(f"({quoted})") == [[path]]


@pytest.mark.parametrize(
    "path",
    [
        *("/Users/ada/a\nb", "/Users/ada/\r", "/Users/ada/\x1b[2J", "/Users/ada/\x85", "/Users/ada/\udcff", "/a\0b"),
        *(
            "relative",
            "",
            "~",
            "/Users/ada/../bob",
            "/Users//ada",
            "//Users/ada",
            "/Users/ada/",
            "/Users/./ada",
            "/a/..",
        ),
    ],
)
def test_a_path_that_cannot_be_written_in_a_profile_is_refused(path: str) -> None:
    with pytest.raises(ToolError, match="cannot be protected by the sandbox of macOS"):
        quote_sbpl(path)
    with pytest.raises(ToolError):
        seatbelt_profile(SeatbeltPolicy(SCRATCH, read_only=(path,)))


@pytest.mark.parametrize(
    "text", ['(version 1) (allow "a)', "(version 1) (allow default", "(version 1) (allow no-such-operation)"]
)
def test_the_reader_refuses_what_is_no_profile(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        Profile(text)
