"""Paths and addresses that are not what they look like, and some that are."""

from __future__ import annotations

PATHS = [  # that are not below docs/, however much they look like it
    "../docs/a", "docs/../secret", "docs/../../etc/passwd", "docs/a/../../secret", "docs/..", "docs/../", "docs/.././secret", "docs//..//secret",
    "docs/./../secret", "./docs/../secret", "/docs/a", "//docs/a", "///docs/a", "/etc/passwd", "//etc/passwd", "/", "//", ".", "..", "./", "../", "", " ",
    "DOCS/a", "Docs/a", "dOcs/a", "docs /a", " docs/a", "docs\t/a", "docs\\a", "docs\\..\\secret", "\\docs\\a", "docs%2fa", "docs%2Fa", "docs%2f..%2fsecret",
    "docs%5c..%5csecret", "%64ocs/a", "d%6fcs/a", "docs%00/a", "docs\x00/a", "docs/a\x00", "docs/\x00../a", "docs/a\n", "docs/a\r", "docs/\x1ba", "docs/\x7fa", "docs/\x85a",
    "~/docs/a", "~", "~root/docs/a", "$HOME/docs/a", "${PWD}/docs/a", "file:docs/a", "file:///docs/a", "C:/docs/a", "c:\\docs\\a", "\\\\host\\docs\\a", "docs:a", "docs:$DATA/a",
    "docs.bak/a", "docsx/a", "xdocs/a", "doc/a", "docs2/../secret", "a/docs/b", "a/../../docs/b", "../x/../docs/a", "../../docs/a", "docs/../../docs/a",
    "proc/self/cwd/docs/a", "/proc/self/cwd/docs/a", "/proc/self/root/etc/passwd", "/dev/fd/0", "link/../docs/../secret", "docs/link/../../secret", "docs/link/../../../docs/a",
    "\uff44ocs/a", "d\u043ecs/a", "docs\u2044a", "docs\u2215a", "docs\uff0fa", "docs\u200b/a", "\u200bdocs/a", "\ufeffdocs/a", "doc\u017f/a", "docs\u2025/a", "do\u00adcs/a", "\u202edocs/a",
]  # fmt: skip
INSIDE = [
    "docs/a",
    "docs/a/b/c.md",
    "./docs/a",
    "docs//a",
    "docs/./a",
    "docs/x/../a",
    "docs/../docs/a",
    "docs/ä",
    "docs/..a",
    "docs/a..",
    "docs/.../a",
]
SECRETS = [  # that lead below secrets/, or would on some disk
    "secrets/a", "secrets", "secrets/", "./secrets/a", "a/../secrets/a", "secrets//a", "secrets/./a", "secrets/x/../a", "SECRETS/a", "Secrets/A", "sEcReTs/a", ".//secrets/a",
    "/secrets/a", "//secrets/a", "secrets/../secrets/a", "a/b/../../secrets/a", "\uff53ecrets/a", "\uff33ECRETS/a", "secret\u017f/a", "secrets/a/../../secrets", "./././secrets",
]  # fmt: skip
URLS = [  # that are not below https://docs.example.com/, however much they look like it
    "http://docs.example.com/a", "ftp://docs.example.com/a", "ws://docs.example.com/a", "file://docs.example.com/a", "javascript://docs.example.com/%0aalert(1)", "//docs.example.com/a",
    "docs.example.com/a", "https:docs.example.com/a", "https:/docs.example.com/a", "https:///docs.example.com/a", "https:\\\\docs.example.com\\a", "https:/\\docs.example.com/a",
    "https://docs.example.com@evil.com/a", "https://docs.example.com:x@evil.com/a", "https://user@docs.example.com/a", "https://user:pass@docs.example.com/a", "https://@docs.example.com/a",
    "https://evil.com@docs.example.com/a", "https://docs.example.com%40evil.com/a", "https://docs.example.com\\@evil.com/a", "https://evil.com\\@docs.example.com/a", "https://evil.com\\.docs.example.com/a",
    "https://evil.com/docs.example.com/a", "https://evil.com?https://docs.example.com/a", "https://evil.com#https://docs.example.com/a", "https://evil.com#@docs.example.com/a",
    "https://evil.com?@docs.example.com/a", "https://docs.example.com.evil.com/a", "https://docs.example.comevil.com/a", "https://xdocs.example.com/a", "https://docs-example.com/a",
    "https://a.docs.example.com/a", "https://example.com/a", "https://docs.example.com:8443/a", "https://docs.example.com:80/a", "https://docs.example.com:0/a", "https://docs.example.com:443@evil.com/a",
    "https://docs.example.com:443x/a", "https://docs.example.com:-1/a", "https://docs.example.com:99999/a", "https://docs.example.com:4 43/a", "https://docs.example.com:\uff14\uff14\uff13/a",
    "https://docs.example.com /a", "https:// docs.example.com/a", " https://docs.example.com/a", "https://docs.example.com/a b", "https://docs.example.com\t/a", "https://docs.example.com\n/a", "https://docs\n.example.com/a",
    "https://docs.example.com\x00.evil.com/a", "https://docs.example.com/\x00", "https://docs%2eexample%2ecom/a", "https://docs.example.com%2f@evil.com/a", "https://docs.example.com%00.evil.com/a",
    "https://docs\u3002example\u3002com/a", "https://docs\uff0eexample\uff0ecom/a", "https://\uff44ocs.example.com/a", "https://d\u043ecs.example.com/a", "https://docs.ex\u00admple.com/a", "https://docs.example.com\u2044evil.com/a",
    "https://docs.example.com\uff0fevil.com/a", "https://docs.example.com\uff20evil.com/a", "https://docs.example.com\uff1aevil.com/a", "https://docs.example.com\uff03.evil.com/a", "https://docs.example.c\u2134m/a",
    "https://[docs.example.com]/a", "https://[::1]/a", "https://127.0.0.1/a", "https://2130706433/a", "https://0x7f000001/a", "https://docs.example.com,evil.com/a", "https://docs.example.com;evil.com/a", "https://docs.example.com&evil.com/a",
    "https://*.example.com/a", "https://docs.*/a", "https://..docs.example.com/a", "https://docs..example.com/a", "https://-docs.example.com/a", "https://xn--docs-.example.com/a", "https", "https://", "", "data:text/html,docs.example.com",
]  # fmt: skip
AT_HOME = [
    "https://docs.example.com/a",
    "HTTPS://DOCS.EXAMPLE.COM/a",
    "https://docs.example.com:443/a",
    "https://docs.example.com/a/../b",
    "https://docs.example.com/a?x=1#y",
    "https://docs.example.com/%61",
    "https://docs.example.com/",
]
SCOPED = [  # the same house, and not below /public/
    "https://docs.example.com/private", "https://docs.example.com/public/../private", "https://docs.example.com/public/%2e%2e/private", "https://docs.example.com/public/.%2e/private", "https://docs.example.com/public/%2E%2E/private",
    "https://docs.example.com/public/..%2fprivate", "https://docs.example.com/public/%2e%2e%2fprivate", "https://docs.example.com/public/..;/private", "https://docs.example.com/Public/a", "https://docs.example.com/PUBLIC/a",
    "https://docs.example.com//public/a", "https://docs.example.com/x/public/a", "https://docs.example.com/public/..\\private", "https://docs.example.com/public/./../private", "https://docs.example.com/public/a/../../private",
    "https://docs.example.com/public%2fa", "https://docs.example.com/publicx", "https://docs.example.com?/public/a", "https://docs.example.com#/public/a", "https://docs.example.com/public/%252e%252e/../../private",
]  # fmt: skip
