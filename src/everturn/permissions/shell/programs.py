"""Known programs: a table of programs that are often allowed, and which of their options run commands or write files.

Options that name the command they run (`find -exec`, `xargs`, `env`) are not in it: `wrappers` reads those.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ProgramOptions(NamedTuple):
    """What the options of a program can do. Letters are short options, names are long ones, words stand as they are."""

    runs: str = ""
    long_runs: str = ""
    writes: str = ""
    long_writes: str = ""
    valued: str = ""  # other letters, after which the rest of the word is a value
    harmless: str = ""  # long names that are prefixes of others
    words: frozenset[str] = frozenset()  # "+" stands for any word that begins with it
    writing: frozenset[str] = frozenset()  # those of the words that write
    is_interpreter: bool = False  # it runs a file, or its standard input
    info_options: str = "-h -v -V --help --version"  # options of an interpreter with which it runs nothing
    flags: frozenset[str] = frozenset()  # long names that take no value
    flag_letters: str = ""  # letters that take none, where the others are not known
    letters_known: bool = False  # all letters are flags but those named above
    inputs: int = -1  # how many arguments it reads; further ones are written
    stops_early: bool = False  # its options end at its first argument
    has_double_dash: bool = True  # its options end at `--`
    runs_stdin: bool = False  # it runs commands from its standard input, whatever the words are
    is_special: bool = False  # its words are no options

    @property
    def stops_at_argument(self) -> bool:
        """Whether the options end at the first argument."""
        return self.stops_early or self.is_interpreter

    @property
    def is_strict(self) -> bool:
        """Whether an unknown long option counts as one that runs something."""
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

PROGRAMS: Final[dict[str, ProgramOptions]] = {
    "awk": ProgramOptions(
        "fEilW",
        "file exec include load source",
        "opd",
        "pretty-print profile dump-variables",
        valued="Fve",
        letters_known=True,
        stops_early=True,
    ),
    "sed": ProgramOptions("f", "file", "iI", "in-place", valued="el", flags=_SED_FLAGS, letters_known=True),
    "sort": ProgramOptions(
        "",
        "compress-program",
        "o",
        "output",
        valued="kStT",
        letters_known=True,
        flags=_names("reverse unique numeric-sort ignore-case stable zero-terminated version-sort merge debug"),
    ),
    "tar": ProgramOptions(
        "IFT",
        "use-compress-program info-script new-volume-script checkpoint-action to-command rsh-command rmt-command files-from",
        "",
        "remove-files index-file",
        valued="fbCgHKLNVX",
        harmless="checkpoint",
        letters_known=True,
    ),
    "man": ProgramOptions("PHCX", "pager html config-file gxditview", valued="eLmMprRsSE", letters_known=True),
    "less": ProgramOptions(
        "k", "lesskey-file lesskey-src lesskey-content", "oO", "log-file LOG-FILE", words=frozenset("+")
    ),
    "find": ProgramOptions(words=_DELETING | {"-files0-from"}, writing=_DELETING, has_double_dash=False),
    "git": ProgramOptions(
        "",
        "config-env exec-path ext-diff upload-pack receive-pack exec open-files-in-pager extcmd template config git-dir "
        "sendmail-cmd to-cmd cc-cmd header-cmd smtp-server tool tool-help browser httpd upload-archive strategy",
        "",
        "output output-directory in-place export-marks separate-git-dir",
        flags=_GIT_FLAGS,
        flag_letters="apqvw",
    ),
    "rsync": ProgramOptions(
        "eM", "rsh rsync-path remote-option", "", "log-file write-batch only-write-batch", valued="fTB"
    ),
    "ssh": ProgramOptions("oFI", "", "E", "", valued="BbcDeiJLlmOpQRSWw"),
    "scp": ProgramOptions("SoFD", "", valued="ciJlPX"),
    "sftp": ProgramOptions("SoFDb", "", valued="BciJlPRX"),
    "curl": ProgramOptions(
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
    "wget": ProgramOptions(
        "e",
        "execute use-askpass config",
        "OoaP",
        "output-document output-file append-output directory-prefix save-cookies rejected-log warc-file hsts-file",
        valued="ABDIlQRtTUwXi",
    ),
    "vim": ProgramOptions(
        "cSsueE", "cmd remote-expr remote-send", "wWV", "startuptime", words=frozenset("+"), runs_stdin=True
    ),
    "emacs": ProgramOptions(
        "lfq",
        "eval execute load funcall batch script insert",
        has_double_dash=False,
        words=_names("-eval -load -batch -script -execute -funcall"),
    ),
    "split": ProgramOptions("", "filter"),
    "rg": ProgramOptions("", "pre hostname-bin", valued="ABCeEfgjmMrtT", harmless="pretty"),
    "fd": ProgramOptions("xX", "exec exec-batch", valued="cdeEjoStT"),
    "bat": ProgramOptions("", "pager diff-tool", valued="lHmr"),
    "ag": ProgramOptions("", "pager"),
    "fzf": ProgramOptions("", "preview bind", valued="dfnqx"),
    "zip": ProgramOptions("T", "unzip-command", valued="bntx"),
    "tree": ProgramOptions("", "", "o", "", valued="HILPT"),
    "tcpdump": ProgramOptions("z", "", "w", "", valued="BcCEFGijmMrQsTVWy"),
    "yq": ProgramOptions("", "", "i", "inplace split-exp", valued=""),
    "make": ProgramOptions("fEI", "eval file makefile include-dir", valued="CjloW"),
    "python": ProgramOptions(
        "cmi", "", valued="WX", is_interpreter=True, letters_known=True, info_options="-h -V -VV --help --version"
    ),
    "perl": ProgramOptions("eEMmdxIFS", "", "i", "", is_interpreter=True, letters_known=True),
    "ruby": ProgramOptions("erIx", "", "i", "", valued="CEFKTW", is_interpreter=True),
    "node": ProgramOptions(
        "epri",
        "eval print require import loader experimental-loader interactive env-file",
        valued="C",
        is_interpreter=True,
        letters_known=True,
    ),
    "php": ProgramOptions(
        "rBREFdzaS",
        "run process-begin process-code process-end process-file define interactive",
        valued="ct",
        is_interpreter=True,
    ),
    "lua": ProgramOptions("eli", "", is_interpreter=True),
    "julia": ProgramOptions("eELi", "eval print load interactive", valued="CHJOpt", is_interpreter=True),
    "rscript": ProgramOptions("e", "", is_interpreter=True),
    "osascript": ProgramOptions("e", "", valued="ls", is_interpreter=True),
    "tclsh": ProgramOptions(is_interpreter=True),
    "wish": ProgramOptions(is_interpreter=True),
    "guile": ProgramOptions("cesl", is_interpreter=True),
    "uniq": ProgramOptions(valued="fsw", inputs=1, letters_known=True),
    "xxd": ProgramOptions(inputs=1),
    "shuf": ProgramOptions("", "", "o", "output random-source", valued="in", letters_known=True),
    "iconv": ProgramOptions("", "", "o", "output", valued="ft"),
    "sdiff": ProgramOptions("", "diff-program", "o", "output", valued="Iw"),
    "diff3": ProgramOptions("", "diff-program"),
    "file": ProgramOptions("", "", "C", "compile", valued="eFfmP"),
    "install": ProgramOptions("", "strip-program", valued="gmoStT"),
    "cpio": ProgramOptions("", "rsh-command", "OF", "file"),
    "gpg": ProgramOptions("", "agent-program dirmngr-program photo-viewer exec-path", "o", "output log-file"),
    "xmllint": ProgramOptions("", "", "o", "output"),
    "xsltproc": ProgramOptions("", "", "o", "output"),
    "pandoc": ProgramOptions("FL", "filter lua-filter pdf-engine", "o", "output extract-media log"),
    "dot": ProgramOptions("", "", "oO", ""),
    "ctags": ProgramOptions("", "options filter-terminator", "fo", "output"),
    "nc": ProgramOptions("ec", "exec sh-exec lua-exec", valued="gGIiMmOPpqsTVWwXx"),
    "openssl": ProgramOptions(
        words=_names("-out -engine -provider -writerand -config -keyout -CAcreateserial"), has_double_dash=False
    ),
    "go": ProgramOptions(
        words=_names(
            "-exec -toolexec -vettool -overlay -modfile -o -C -coverprofile -cpuprofile -memprofile -trace -outputdir"
        )
    ),
    "cargo": ProgramOptions("Z", "config"),
    "gcc": ProgramOptions("BT", "specs", "o", "", words=_names("-wrapper -specs -save-temps -dumpdir -MF")),
    "latex": ProgramOptions(words=_names("-shell-escape -enable-write18 -output-directory -jobname -shell-restricted")),
    "svn": ProgramOptions("", "diff-cmd diff3-cmd editor-cmd merge-tool config-option config-dir"),
    "hg": ProgramOptions("", "config config-file"),
    "sqlite": ProgramOptions(runs_stdin=True),
    "psql": ProgramOptions(runs_stdin=True),
    "mysql": ProgramOptions(runs_stdin=True),
    "gnuplot": ProgramOptions(runs_stdin=True),
    "ed": ProgramOptions(runs_stdin=True),
    "red": ProgramOptions(runs_stdin=True),
    "dc": ProgramOptions(runs_stdin=True),
    "m4": ProgramOptions(runs_stdin=True),
    "time": ProgramOptions("", "", "oa", "output append", valued="f", stops_early=True),
    # Shell builtins.
    "printf": ProgramOptions(valued="v", letters_known=True, stops_early=True),
    "test": ProgramOptions(is_special=True),
    "compgen": ProgramOptions("CFW", valued="oAGPSX"),
    "bind": ProgramOptions("xf", valued="mqruk"),
    "history": ProgramOptions("", "", "awrn", "", valued="d"),
    "fc": ProgramOptions("es"),
}
