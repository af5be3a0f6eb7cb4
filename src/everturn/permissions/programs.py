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
    is_interpreter: bool = False  # it runs a file, or what comes in
    shows: str = "-h -v -V --help --version"  # options of an interpreter with which it runs nothing
    flags: frozenset[str] = frozenset()  # long names that take no value
    flag_letters: str = ""  # letters that take none, where the others are not known
    letters_known: bool = False  # all letters are flags but those named above
    inputs: int = -1  # how many arguments it reads; what comes behind them is written
    stops_early: bool = False  # its options end at its first argument
    ends: bool = True  # and at `--`
    reads_orders: bool = False  # what comes in is its orders, whatever the words are
    is_special: bool = False  # its words are no options

    @property
    def stops(self) -> bool:
        """Whether what stands behind its first argument is none of its options."""
        return self.stops_early or self.is_interpreter

    @property
    def is_strict(self) -> bool:
        """Whether a long option that is not known counts as one that runs something."""
        return self.is_interpreter


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SED_FLAGS: Final = _names(
    "quiet silent regexp-extended separate unbuffered null-data posix debug sandbox version help zero-terminated "
    "follow-symlinks"
)
_GIT_FLAGS: Final = _names(
    "oneline stat graph all decorate cached staged name-only name-status patch no-pager no-color color no-index follow "
    "no-merges merges reverse first-parent numstat shortstat summary raw abbrev-commit full-history topo-order quiet "
    "verbose force dry-run no-edit amend porcelain short branch untracked-files ignored exclude-standard line-number "
    "ignore-case word-regexp files-with-matches perl-regexp fixed-strings extended-regexp no-patch no-ext-diff"
)


_DELETING: Final = frozenset("-delete -fprint -fprint0 -fprintf -fls".split())

PROGRAMS: Final[dict[str, Program]] = {
    "awk": Program(
        "fEilW",
        "file exec include load source",
        "opd",
        "pretty-print profile dump-variables",
        valued="Fve",
        letters_known=True,
        stops_early=True,
    ),
    "sed": Program("f", "file", "iI", "in-place", valued="el", flags=_SED_FLAGS, letters_known=True),
    "sort": Program(
        "",
        "compress-program",
        "o",
        "output",
        valued="kStT",
        letters_known=True,
        flags=_names("reverse unique numeric-sort ignore-case stable zero-terminated version-sort merge debug"),
    ),
    "tar": Program(
        "IFT",
        "use-compress-program info-script new-volume-script checkpoint-action to-command rsh-command rmt-command files-from",
        "",
        "remove-files index-file",
        valued="fbCgHKLNVX",
        harmless="checkpoint",
        letters_known=True,
    ),
    "man": Program("PHCX", "pager html config-file gxditview", valued="eLmMprRsSE", letters_known=True),
    "less": Program("k", "lesskey-file lesskey-src lesskey-content", "oO", "log-file LOG-FILE", words=frozenset("+")),
    "find": Program(words=_DELETING | {"-files0-from"}, writing=_DELETING, ends=False),
    "git": Program(
        "",
        "config-env exec-path ext-diff upload-pack receive-pack exec open-files-in-pager extcmd template config git-dir "
        "sendmail-cmd to-cmd cc-cmd header-cmd smtp-server tool tool-help browser httpd upload-archive strategy",
        "",
        "output output-directory in-place export-marks separate-git-dir",
        flags=_GIT_FLAGS,
        flag_letters="apqvw",
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
        "trace-config create-file-mode "
        "alt-svc libcurl",
        valued="AbCdeEFHhmPQrtTuUwxXyYz",
        harmless="cookie",
        letters_known=True,
    ),
    "wget": Program(
        "e",
        "execute use-askpass config",
        "OoaP",
        "output-document output-file append-output directory-prefix save-cookies rejected-log warc-file hsts-file",
        valued="ABDIlQRtTUwXi",
    ),
    "vim": Program(
        "cSsueE", "cmd remote-expr remote-send", "wWV", "startuptime", words=frozenset("+"), reads_orders=True
    ),
    "emacs": Program(
        "lfq",
        "eval execute load funcall batch script insert",
        ends=False,
        words=_names("-eval -load -batch -script -execute -funcall"),
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
    "python": Program(
        "cmi", "", valued="WX", is_interpreter=True, letters_known=True, shows="-h -V -VV --help --version"
    ),
    "perl": Program("eEMmdxIFS", "", "i", "", is_interpreter=True, letters_known=True),
    "ruby": Program("erIx", "", "i", "", valued="CEFKTW", is_interpreter=True),
    "node": Program(
        "epri",
        "eval print require import loader experimental-loader interactive env-file",
        valued="C",
        is_interpreter=True,
        letters_known=True,
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
    "tclsh": Program(is_interpreter=True),
    "wish": Program(is_interpreter=True),
    "guile": Program("cesl", is_interpreter=True),
    "uniq": Program(valued="fsw", inputs=1, letters_known=True),
    "xxd": Program(inputs=1),
    "shuf": Program("", "", "o", "output random-source", valued="in", letters_known=True),
    "iconv": Program("", "", "o", "output", valued="ft"),
    "sdiff": Program("", "diff-program", "o", "output", valued="Iw"),
    "diff3": Program("", "diff-program"),
    "file": Program("", "", "C", "compile", valued="eFfmP"),
    "install": Program("", "strip-program", valued="gmoStT"),
    "cpio": Program("", "rsh-command", "OF", "file"),
    "gpg": Program("", "agent-program dirmngr-program photo-viewer exec-path", "o", "output log-file"),
    "xmllint": Program("", "", "o", "output"),
    "xsltproc": Program("", "", "o", "output"),
    "pandoc": Program("FL", "filter lua-filter pdf-engine", "o", "output extract-media log"),
    "dot": Program("", "", "oO", ""),
    "ctags": Program("", "options filter-terminator", "fo", "output"),
    "nc": Program("ec", "exec sh-exec lua-exec", valued="gGIiMmOPpqsTVWwXx"),
    "openssl": Program(words=_names("-out -engine -provider -writerand -config -keyout -CAcreateserial"), ends=False),
    "go": Program(
        words=_names(
            "-exec -toolexec -vettool -overlay -modfile -o -C -coverprofile -cpuprofile -memprofile -trace -outputdir"
        )
    ),
    "cargo": Program("Z", "config"),
    "gcc": Program("BT", "specs", "o", "", words=_names("-wrapper -specs -save-temps -dumpdir -MF")),
    "latex": Program(words=_names("-shell-escape -enable-write18 -output-directory -jobname -shell-restricted")),
    "svn": Program("", "diff-cmd diff3-cmd editor-cmd merge-tool config-option config-dir"),
    "hg": Program("", "config config-file"),
    "sqlite": Program(reads_orders=True),
    "psql": Program(reads_orders=True),
    "mysql": Program(reads_orders=True),
    "gnuplot": Program(reads_orders=True),
    "ed": Program(reads_orders=True),
    "red": Program(reads_orders=True),
    "dc": Program(reads_orders=True),
    "m4": Program(reads_orders=True),
    "time": Program("", "", "oa", "output append", valued="f", stops_early=True),
    # What the shell does itself.
    "printf": Program(valued="v", letters_known=True, stops_early=True),
    "test": Program(is_special=True),
    "compgen": Program("CFW", valued="oAGPSX"),
    "bind": Program("xf", valued="mqruk"),
    "history": Program("", "", "awrn", "", valued="d"),
    "fc": Program("es"),
}
