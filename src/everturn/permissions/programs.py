"""Programs that are often allowed, and which of their options run commands or write files: a table.

Not in it are options that say in so many words what is run (`find -exec`, `xargs`, `env`): `wrappers` reads those.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Program(NamedTuple):
    """What a program's options can do. Letters are short options, names are long ones, words stand as they are."""

    runs: str = ""
    long_runs: str = ""
    writes: str = ""
    long_writes: str = ""
    valued: str = ""  # other letters, behind which the rest of the word is a value
    harmless: str = ""  # long names that others begin with
    words: frozenset[str] = frozenset()  # "+" stands for any word that begins with it
    writing: frozenset[str] = frozenset()  # those of the words that write
    is_interpreter: bool = False  # its options end where its script begins
    shows: str = "-h -v -V --help --version"  # options of an interpreter with which it runs nothing


_DELETING: Final = frozenset("-delete -fprint -fprint0 -fprintf -fls".split())

PROGRAMS: Final[dict[str, Program]] = {
    "awk": Program(
        "fEilW", "file exec include load source", "opd", "pretty-print profile dump-variables", valued="Fve"
    ),
    "sed": Program("f", "file", "iI", "in-place", valued="el"),
    "sort": Program("", "compress-program", "o", "output", valued="kStT"),
    "tar": Program(
        "IFT",
        "use-compress-program info-script new-volume-script checkpoint-action to-command rsh-command rmt-command files-from",
        "",
        "remove-files index-file",
        valued="fbCgHKLNVX",
        harmless="checkpoint",
    ),
    "man": Program("PHCX", "pager html config-file gxditview", valued="eLmMprRsSE"),
    "less": Program("k", "lesskey-file lesskey-src lesskey-content", "oO", "log-file LOG-FILE", words=frozenset("+")),
    "find": Program(words=_DELETING, writing=_DELETING),
    "git": Program(
        "",
        "config-env exec-path ext-diff upload-pack receive-pack exec open-files-in-pager extcmd template config",
        "",
        "output output-directory",
    ),
    "rsync": Program("eM", "rsh rsync-path remote-option", "", "log-file write-batch only-write-batch", valued="fTB"),
    "ssh": Program("oFI", "", "E", "", valued="BbcDeiJLlmOpQRSWw"),
    "scp": Program("SoFD", "", valued="ciJlPX"),
    "sftp": Program("SoFDb", "", valued="BciJlPRX"),
    "curl": Program(
        "K",
        "config engine",
        "oODcJ",
        "output output-dir remote-name remote-name-all dump-header cookie-jar trace trace-ascii stderr etag-save hsts "
        "alt-svc libcurl",
        valued="AbCdeEFHhmPQrtTuUwxXyYz",
        harmless="cookie",
    ),
    "wget": Program(
        "e",
        "execute use-askpass config",
        "OoaP",
        "output-document output-file append-output directory-prefix save-cookies rejected-log warc-file hsts-file",
        valued="ABDIlQRtTUwXi",
    ),
    "vim": Program("cSsu", "cmd remote-expr remote-send", "wW", "", words=frozenset("+")),
    "emacs": Program(
        "lfq", "eval execute load funcall batch script insert", words=frozenset("-eval -load -batch -script".split())
    ),
    "split": Program("", "filter"),
    "rg": Program("", "pre hostname-bin", valued="ABCeEfgjmMrtT", harmless="pretty"),
    "fd": Program("xX", "exec exec-batch", valued="cdeEjoStT"),
    "bat": Program("", "pager diff-tool", valued="lHmr"),
    "ag": Program("", "pager"),
    "fzf": Program("", "preview bind", valued="dfnqx"),
    "zip": Program("T", "unzip-command", valued="bntx"),
    "tree": Program("", "", "o", "", valued="HILPT"),
    "tcpdump": Program("z", "", "w", "", valued="BcCEFGijmMrQsTVWy"),
    "yq": Program("", "", "i", "inplace split-exp", valued=""),
    "make": Program("fEI", "eval file makefile include-dir", valued="CjloW"),
    "python": Program("cmi", "", valued="WX", is_interpreter=True, shows="-h -V -VV --help --version"),
    "perl": Program("eEMmdxI", "", "i", "", valued="F", is_interpreter=True),
    "ruby": Program("erIx", "", "i", "", valued="CEFKTW", is_interpreter=True),
    "node": Program(
        "epri",
        "eval print require import loader experimental-loader interactive env-file",
        valued="C",
        is_interpreter=True,
    ),
    "php": Program(
        "rBREFdzaS",
        "run process-begin process-code process-end process-file define interactive",
        valued="ct",
        is_interpreter=True,
    ),
    "lua": Program("eli", "", is_interpreter=True),
    "julia": Program("eELi", "eval print load interactive", valued="CHJOpt", is_interpreter=True),
    "rscript": Program("e", "", is_interpreter=True),
    "osascript": Program("e", "", valued="ls", is_interpreter=True),
}
