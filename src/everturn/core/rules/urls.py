"""URLs: parses and normalises a URL for rules, so that no other program can read it differently.

A URL that browsers, servers and libraries are known to parse differently is rejected (`None`).
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from everturn.core.rules.globs import ANY_PATH, TextMatcher, compile_path_glob, compile_text_glob, fold_text, parse_glob

_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-._~")
_SCHEME: Final = frozenset(string.ascii_lowercase + string.digits + "+-.")
_HOST: Final = frozenset(string.ascii_lowercase + string.digits + "-_.")
_HEX: Final = frozenset(string.hexdigits)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or address alone; nothing is resolved."""
    if host == "localhost":
        return True
    from ipaddress import ip_address  # seldom needed, and slow to import

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Url(Struct, frozen=True, gc=False):
    """A normalised URL; `port` is empty if it is the scheme's default."""

    scheme: str
    host: str
    port: str
    path: str
    query: str = ""

    @property
    def target(self) -> str:
        """Path and query as they are sent."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}{':' if self.port else ''}{self.port}{self.target}"


def parse_url(text: str) -> Url | None:
    """Parse a URL; None if it has a user, control characters, or an ambiguous form."""
    if not _is_plain(text):
        return None
    scheme, mark, rest = text.partition("://")
    scheme = scheme.lower()
    if not mark or not scheme[:1].isalpha() or not _SCHEME.issuperset(scheme):
        return None
    rest = rest.partition("#")[0]  # never sent
    place, query = _cut(rest, "?")
    authority, path = _cut(place, "/")
    host_port = _read_authority(authority)
    path, query = _normalize_escapes("/" + path), _normalize_escapes(query)
    if host_port is None or path is None or query is None or (not host_port[0] and scheme != "file"):
        return None
    if not _is_unambiguous_path(path):
        return None
    host, port = host_port
    return Url(scheme, host, "" if port == _PORTS.get(scheme) else port, _without_dots(path), query)


def _is_plain(text: str) -> bool:
    """Whether a text has no spaces, control characters, backslashes or lone surrogates."""
    if text.isascii() and text.isprintable():
        return " " not in text and "\\" not in text
    return not any(
        char <= " " or "\x7f" <= char <= "\xa0" or "\ud800" <= char <= "\udfff" or char in "\\" or char.isspace()
        for char in text
    )


def _cut(text: str, at: str) -> tuple[str, str]:
    before, _, behind = text.partition(at)
    return before, behind


def _read_authority(text: str) -> tuple[str, str] | None:
    """Host and port; None with a user in front, or if either is invalid."""
    text = text.lower()
    if text.startswith("["):
        address, mark, rest = text[1:].partition("]")
        host = _read_ipv6(address) if mark else None
        if host is None or (rest and not rest.startswith(":")):
            return None
        port = rest[1:]
    else:
        host, port = _cut(text, ":")
        host = host.removesuffix(".")
        if not _HOST.issuperset(host) or ".." in host or host.startswith(".") or not _is_unambiguous_host(host):
            return None
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        return None
    return host, str(int(port)) if port else ""


def _is_unambiguous_host(host: str) -> bool:
    """Whether a host is unambiguous: a name, or an IPv4 address in plain dotted form (not octal, hex or shortened)."""
    last = host.rpartition(".")[2]
    if not last.isdigit() and not (last.startswith("0x") and _HEX.issuperset(last[2:])):
        return True
    parts = host.split(".")
    return len(parts) == 4 and all(part.isdigit() and str(int(part)) == part and int(part) < 256 for part in parts)


def _read_ipv6(text: str) -> str | None:
    from ipaddress import AddressValueError, IPv6Address  # seldom needed, and slow to import

    try:
        address = IPv6Address(text)
    except AddressValueError:
        return None
    if address.scope_id:
        return None
    return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address.compressed}]"


def _normalize_escapes(text: str) -> str | None:
    """Percent-encode what must be, and nothing else; None if a `%` is not followed by two hex digits."""
    if "%" not in text and text.isascii():
        return text
    first, *rest = text.split("%")
    pieces = [_escape(first)]
    for piece in rest:
        code = piece[:2]
        if len(code) < 2 or not _HEX.issuperset(code):
            return None
        char = chr(int(code, 16))
        pieces.append((char if char in _UNRESERVED else f"%{code.upper()}") + _escape(piece[2:]))
    return "".join(pieces)


def _escape(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "replace")) for c in text)


def _is_unambiguous_path(path: str) -> bool:
    """Whether every program resolves its `..` alike: some decode `%2F` first, or drop what follows a `;`."""
    if ".." not in path or ("%" not in path and ";" not in path):
        return True
    loose = path.replace("%2F", "/").replace("%5C", "/").replace("%25", "%").replace("%2F", "/").replace("%2f", "/")
    return all(segment == ".." or segment.partition(";")[0] != ".." for segment in loose.split("/")) and (
        loose.split("/").count("..") == path.split("/").count("..")
    )


def _without_dots(path: str) -> str:
    """Resolve `.` and `..`; an empty segment counts as one, as in servers."""
    if "/." not in path:
        return path
    resolved: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del resolved[-1:]
        elif segment != ".":
            resolved.append(segment)
    return "/" + "/".join(resolved) + ("/" if segments[-1] in (".", "..") and resolved else "")


def lenient_url(url: Url) -> Url:
    """The URL as a lenient server may read it: percent-encoding decoded, slashes merged, case folded, https as http."""
    from urllib.parse import unquote

    path = unquote(unquote(url.path)).replace("\\", "/")
    while "//" in path:
        path = path.replace("//", "/")
    scheme = "http" if url.scheme == "https" else url.scheme
    return Url(scheme, url.host, url.port, fold_text(_without_dots(path)), fold_text(url.query))


# --------------------------------------------------------------------------------------------------------- patterns


def compile_url_pattern(pattern: str, generous: bool) -> Callable[[Url], bool] | str:
    """A matcher of URLs, or why the pattern is invalid. A generous one matches what `lenient_url` returns."""
    if pattern in ("*", "**"):
        return lambda url: True
    scheme, mark, rest = pattern.partition("://")
    if not mark:
        return "an address begins with its scheme, as in https://example.com/**"
    authority, slash, path = rest.partition("/")
    host, port = _pattern_authority(authority.lower())
    scheme = scheme.lower()
    problem = _problem_with(scheme, host, port, path)
    if problem:
        return problem
    if port == _PORTS.get(scheme):
        port = ""
    if generous and scheme == "https":
        scheme = "http"
    fits_host = compile_text_glob(parse_glob(host))
    fits_path = _target_glob("/" + path, generous) if slash else None

    def fits(url: Url) -> bool:
        if scheme != "*" and scheme != url.scheme:
            return False
        if port != url.port and port != "*" and not (generous and not port):
            return False
        if not fits_host(url.host):
            return False
        return fits_path is None or fits_path(url.target) or (generous and fits_path(url.path))

    return fits


def _pattern_authority(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, port = text.partition("]")
        return (_read_ipv6(host[1:]) or "!"), port.removeprefix(":")
    host, _, port = text.partition(":")
    return host.removesuffix("."), port


def _problem_with(scheme: str, host: str, port: str, path: str) -> str:
    """Why these parts can match no URL; "" if they can."""
    if scheme != "*" and (not scheme[:1].isalpha() or not _SCHEME.issuperset(scheme)):
        return f"{scheme!r} is no scheme: it is written out, or *"
    if "@" in host + port:
        return "an address with a user in it is never allowed, so no pattern has one"
    is_plain = host.startswith("[") or (_HOST | {"*", "?"}).issuperset(host)
    if not is_plain or (not host and scheme not in ("file", "*")):
        return f"{host!r} is no host: letters, digits, - and ., * for any run (xn--… for names beyond ASCII)"
    if port not in ("", "*") and not (port.isascii() and port.isdigit()):
        return f"{port!r} is no port: a number, or *"
    if any(segment in (".", "..") for segment in path.split("/")):
        return "the path of an address has no . or .. left when it is compared"
    if not _is_plain(path.replace("\\", "")) or _normalize_escapes(path) is None:
        return "the path has a character that no address can have"
    return ""


def _target_glob(path: str, generous: bool) -> TextMatcher:
    """A matcher of the path; a generous `/a/**` matches `/a` as well."""
    if not generous:
        return compile_path_glob(parse_glob(_normalize_escapes(path) or path))
    from urllib.parse import unquote

    tokens = [fold_text(unquote(unquote(token))) if isinstance(token, str) else token for token in parse_glob(path)]
    fits = compile_path_glob(tokens)
    if tokens[-1] != ANY_PATH or len(tokens) < 2 or not str(tokens[-2]).endswith("/"):
        return fits
    itself = compile_path_glob([*tokens[:-2], str(tokens[-2])[:-1]])
    return lambda text: fits(text) or itself(text)
