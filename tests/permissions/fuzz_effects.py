"""Real programs, a canary, and every way to write a word: what a rule for a program allows must not use its powers.

Lines are made up of commands that would run ./evil or write PWN by an option, and of such that would not. Each is judged
under rules that name its programs only (`sort *`). Those that are allowed are run by bash in a folder of their own, with
files and variables lying about whose names and values are options. A canary that sings is a gate that was got round.

By hand, so many lines: python -m tests.permissions.fuzz_effects 200000 [seed]
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from everturn.core.rules.policy import Policy, Rule
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

BATCH = 400

# What would run ./evil, or write PWN, small or victim.
HOSTILE = """
sort -S1k --compress-program=./evil big | sort -S1k --compress-program ./evil big | sort -o PWN small | sort --output=PWN small
sort -uo PWN small | sort small -oPWN | sort -S1k --compress-prog=evil big
find . -maxdepth 0 -exec ./evil ; | find . -maxdepth 0 -fprint PWN | find . -maxdepth 0 -execdir ./evil ; | find . -name victim -delete
find . -maxdepth 0 -fprintf PWN x | find . -maxdepth 0 -fls PWN | find -files0-from list -exec sort {} +
find . -maxdepth 0 -ok ./evil ; | find . -maxdepth 1 -name small -exec sort -o PWN {} ;
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=./evil small | tar -cf /dev/null -I ./evil small
tar -cf /dev/null --to-command=./evil -xf a.tar | tar cIf ./evil /dev/null small | tar -xf a.tar --to-command ./evil
tar -cf /dev/null -F ./evil -L1 -M big | tar --use-compress-program=./evil -cf /dev/null small | tar -cf /dev/null --remove-files victim
git grep --no-index -O./evil x | git grep --no-index --open-files-in-pager=./evil x | git diff --no-index --output=PWN small big
git log --output=PWN | git -c alias.zz=!./evil zz | git --exec-path=. zz | git log -1 --format=x --outpu=PWN
git config alias.zz !./evil | git archive -o PWN HEAD | git format-patch -o PWND --root | git bundle create PWN HEAD
git --git-dir=other.git status | git show --output PWN | git ls-remote --upload-pack=./evil . | git fetch --upload-pack ./evil .
sed -n 1e./evil small | sed -n wPWN small | sed -i.bak s/x/y/ small | sed s/x/.\\/evil/e small | sed -f evil.sed small
sed -n -e p -e wPWN small | sed -ni d victim | sed --in-place p victim | sed -s --expression=wPWN small | sed -E -e s/x/y/wPWN small
awk BEGIN{system("./evil")} | awk BEGIN{print>"PWN"} | awk -f evil.awk | awk BEGIN{"./evil"|getline} | gawk -i inplace {print(1)} small
awk -v x=1 BEGIN{print"x"|"./evil"} | mawk BEGIN{system("./evil")} | gawk -o PWN 1 | gawk --pretty-print=PWN 1 | gawk -E evil.awk
env ./evil | env -S ./evil | env -i -S./evil | env --split-string=./evil | env -u X -S./evil | env -C . ./evil | env -vS ./evil
xargs -a small ./evil | xargs -a small sort -o PWN | nice -n 1 ./evil | timeout 5 ./evil | nohup ./evil | setsid ./evil | stdbuf -oL ./evil
split --filter=./evil small | man -P ./evil -l small.1 | man -H./evil -l small.1 | man --pager=./evil -l small.1
less -o PWN small | less -OPWN small | curl -s -o PWN file://@CWD@/small | curl -s -K curlrc | curl -A -- -s -qK curlrc
curl -s -w %output{PWN}x file://@CWD@/small | curl -s --write-out %output{PWN}x file://@CWD@/small | curl -sD PWN file://@CWD@/small
curl -s --trace PWN file://@CWD@/small | curl -s --libcurl PWN file://@CWD@/small | curl -sO file://@CWD@/PWNED --output-dir .
uniq small PWN | uniq -c small PWN | uniq -f 1 -- small PWN | shuf -o PWN small | shuf --output=PWN small | shuf -n1 -oPWN small
xxd small PWN | xxd -r -p small PWN | iconv -o PWN small | iconv -f utf8 --output=PWN small | sdiff -o PWN small small
diff3 --diff-program=./evil small small small | install -s --strip-program=./evil small PWN3 | file -C -m small
compgen -W $(./evil) | compgen -C ./evil x | complete -C ./evil x | jobs -x ./evil | mapfile -C ./evil -c1 x | history -w PWN
make -f evil.mk | make --eval=x:;./evil x | make SHELL=./evil all | make -E x:;./evil x | make X=$(shell\t./evil) all
perl -e system("./evil") | perl -F/;system("./evil")/ -ane1 small | python3 -c import\tos;os.system("./evil") | node -e 1
vim -es -u NONE -c !./evil -c q! | ed -s small | dc -e !./evil | m4 evil.m4 | sqlite3 :memory: .shell\t./evil
printf -v PATH . | printf -vPATH . | read -aPATH | strace -o |./evil true | time -o PWN true | script -c ./evil PWN
zip -T -TT ./evil a.zip small | openssl rand -out PWN 3 | nc -e ./evil 127.0.0.1 9
""".strip()

# What would not.
HARMLESS = """
sort small | sort -rn -k2,2 small | sort -u -- small | sort -t, -k1 big small | sort -S1k -T . big | sort --reverse small | sort -c small
find . -maxdepth 1 -name small | find . -name *.py -print0 | find . -maxdepth 1 -name small -exec sort {} ; | find . -maxdepth 1 -type f -exec sort -u {} +
find src -exec cat {} + | find . -maxdepth 0 -exec echo x ; | find ./src ( -name a -o -name b )
tar -tf a.tar | tar tvf a.tar | tar -cf /dev/null small | tar cf - small | tar -cf /dev/null -C . small big | tar tf a.tar --checkpoint=1
git log -1 | git log --oneline -- small | git diff --no-index small big | git grep --no-index -n x | git grep -e x -- small | git status --short
git show HEAD | git log -n 5 -p | git log --format=%h -3 | git diff --stat -- small | git ls-files -o | git rev-parse HEAD | git config --get user.name
sed -n 1,5p small | sed s/x/y/g small | sed -n /x/,/y/p small | sed -e p -e d small | sed -E -n -- p small | sed y/abc/def/ small
awk {print$1} small | awk -F: {print$1} small | awk -v x=1 {print$x} small | awk $1>5 small | awk -- /x/ small | gawk NR==1 small
env X=1 sort small | env -i cat small | env -u X sort -u small | nice -n 1 cat small | timeout 5 sort small | nohup cat small | stdbuf -oL cat small
xargs -a small echo | xargs -a names cat | xargs -a names -n1 wc -l | xargs -a names -I% echo % | xargs -a names sort --
uniq small | uniq -c small | uniq -f 1 small | uniq -- small | shuf small | shuf -n 1 small | shuf -e a b c | shuf -i 1-5
curl -s file://@CWD@/small | curl -sS -w %{http_code} file://@CWD@/small | curl -A -- -s file://@CWD@/small | curl -s -H a:o file://@CWD@/small
cat small big | cat -n small | grep -n x small | grep -e -o small | grep -rn x src | ls -la src | ls -- small | head -n 2 small | tail -1 big
wc -l small big | cut -d, -f1 small | tr a b | nl small | tac small | diff small big | cmp small big | comm small small | join small small
xxd small | iconv -f utf8 small | file small | less small | man -w ls | python3 ok.py -c x | python3 -B ok.py | perl ok.pl -e x | node ok.js -e x
make all | make -j2 all | make -n all | jq -r . data.json | test -f small | [ -n x ] | [ small = big ] | printf %s\\n a b | printf -- x
echo {} a,b $X *.py | echo -e x | true | basename ./small | dirname ./src/a | date +%s | stat small | du -s src | id -u | uname -a | seq 3
split -n l/1 small out. | base64 small | md5sum small big | od -c small | rev small | fold -w 3 small | paste small small
""".strip()

ENVIRONMENT = {
    "X": "-oPWN", "Y": "-o PWN", "Q": "--compress-program=./evil", "W": "--output=PWN", "E": "-exec ./evil ;", "V": "-i",
    "N": "small PWN", "HOME": "@CWD@", "Z": "", "P": "BEGIN{system(\"./evil\")}", "D": "-delete", "S": "1e./evil",
}  # fmt: skip
FILES = [
    "-oPWN",
    "--output=PWN",
    "--checkpoint=1",
    "--checkpoint-action=exec=evil",
    "-i",
    "--compress-program=evil",
    "-Oevil",
    "-f",
    "PWN.py",
]


class Line(NamedTuple):
    """A command line, the rules it is judged by, and how it was made."""

    text: str
    rules: tuple[str, ...]
    how: str


def _forms(text: str) -> list[list[str]]:
    """Commands as words; a tab in one is a blank."""
    return [
        [w.replace("\t", " ") for w in command.split(" ") if w]
        for row in text.split("\n")
        for command in row.split(" | ")
        if command
    ]


BAD, GOOD = _forms(HOSTILE), _forms(HARMLESS)
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:%+@")


class Maker:
    """Makes lines up."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    # Ways to write a word: those that a reader must see through, and those that nobody can.

    def plain(self, word: str) -> str:
        return shlex.quote(word)

    def double(self, word: str) -> str:
        return '"' + "".join("\\" + c if c in '\\"$`' else c for c in word) + '"'

    def ansi(self, word: str) -> str:
        return "$'" + "".join(f"\\x{ord(c):02x}" if self.rng.random() < 0.5 or c in "'\\" else c for c in word) + "'"

    def backslash(self, word: str) -> str:
        return "".join("\\" + c if c not in SAFE or self.rng.random() < 0.3 else c for c in word) or "''"

    def split(self, word: str) -> str:
        at = self.rng.randrange(len(word) + 1)
        return self.rng.choice([self.plain, self.double])(word[:at]) + self.rng.choice([self.double, self.backslash])(
            word[at:]
        )

    def brace(self, word: str) -> str:
        if not word or not set(word) <= SAFE:
            return self.plain(word)
        at = self.rng.randrange(len(word))
        return word[:at] + "{" + word[at:] + ",}" if at else "{" + word + "," + word + "}"

    def glob(self, word: str) -> str:
        if not word or not set(word) <= SAFE:
            return self.plain(word)
        at = self.rng.randrange(len(word))
        return self.rng.choice(
            [
                word[:at] + "?" + word[at + 1 :],
                word[:at] + "[" + word[at] + "]" + word[at + 1 :],
                word[: at + 1] + "*",
                "./" + word[:at] + "*",
            ]
        )

    def default(self, word: str) -> str:
        if not set(word) <= SAFE:
            return self.plain(word)
        sign = self.rng.choice([":-", "-", ":=", "="])
        text = "${zq" + sign + word + "}"
        return self.rng.choice([text, f'"{text}"'])

    def other(self, word: str) -> str:
        if not set(word) <= SAFE:
            return self.plain(word)
        return self.rng.choice(['"${HOME:+' + word + '}"', "${HOME+" + word + "}"])

    def substituted(self, word: str) -> str:
        return self.rng.choice(['"$(echo {})"', "$(echo {})", "`echo {}`", "$(printf %s {})"]).replace(
            "{}", self.plain(word)
        )

    def glued(self, word: str) -> str:
        at = self.rng.randrange(len(word) + 1)
        return (
            self.plain(word[:at])
            + self.rng.choice(["$Z", '"$Z"', "${Z}", '"${zq}"'])
            + (self.plain(word[at:]) if word[at:] else "")
        )

    def variable(self, word: str) -> str:
        return self.rng.choice(
            [
                "$X",
                '"$X"',
                "$Y",
                "${Q}",
                '"$W"',
                "$E",
                "$V",
                "$N",
                "$D",
                '"$S"',
                '"$P"',
                "$Z",
                "*",
                "*.py",
                "-*",
                "~",
                "$((1-3))",
            ]
        )

    def written(self, word: str, is_tame: bool) -> str:
        """Write a word in some way."""
        tame = [self.plain, self.plain, self.plain, self.double, self.ansi, self.backslash, self.split, self.brace]
        wild = [self.glob, self.default, self.other, self.substituted, self.glued, self.variable, self.brace, self.glob]
        return self.rng.choice(tame if is_tame or self.rng.random() < 0.5 else wild)(word)

    # Ways to put words together.

    def arranged(self, words: list[str]) -> list[str]:
        """The same command with something put in, cut short, or joined."""
        rng = self.rng
        words = list(words)
        if rng.random() < 0.3:
            letter = rng.choice("abcdefghiklmnopqrstuvwxyzABCDEFGIKLNPRSTUVWXYZ0")
            extra = rng.choice(
                [
                    ["--"],
                    [f"-{letter}", "--"],
                    [f"-{letter}"],
                    ["-"],
                    [f"--{rng.choice(words).strip('-')}", "--"],
                    [f"-{letter}{rng.choice('abeiknopsuvxSTAO')}"],
                ]
            )
            at = rng.randrange(1, len(words) + 1)
            words[at:at] = extra
        for at, word in enumerate(words[1:], 1):
            if word.startswith("--") and len(word.partition("=")[0]) > 3 and rng.random() < 0.25:
                name, sign, value = word.partition("=")
                words[at] = name[: rng.randrange(3, len(name) + 1)] + sign + value
            elif len(word) == 2 and word[0] == "-" and word[1].isalpha() and rng.random() < 0.2:
                words[at] = f"-{rng.choice('nsvEiruzaqcS')}{word[1]}"
        # Not for tar: where the name of an archive stands somebody's file may stand then, and to write it is its trade.
        if len(words) > 2 and words[0] != "tar" and rng.random() < 0.1:
            at = rng.randrange(1, len(words))
            words.insert(rng.randrange(1, len(words)), words.pop(at))
        return words

    def command(self) -> tuple[str, set[str]]:
        """A command, and the names of its programs."""
        rng = self.rng
        is_bad = rng.random() < 0.85
        words = list(rng.choice(BAD if is_bad else GOOD))
        if rng.random() < (0.6 if is_bad else 0.35):
            words = self.arranged(words)
        is_tame = rng.random() < (0.4 if is_bad else 0.8)
        name, *rest = words
        # A whole stretch of words in braces.
        if len(rest) > 1 and rng.random() < 0.1:
            at = rng.randrange(len(rest) - 1)
            to = rng.randrange(at + 2, len(rest) + 1)
            braced = "{" + ",".join(self.plain(w) if set(w) <= SAFE else self.double(w) for w in rest[at:to]) + "}"
            texts = [
                *(self.written(w, is_tame) for w in rest[:at]),
                braced,
                *(self.written(w, is_tame) for w in rest[to:]),
            ]
        else:
            texts = [self.written(word, is_tame) for word in rest]
        return " ".join([name, *texts]), {name, *(w for w in words if w in WRAPPED)}

    def line(self) -> Line:
        """A line."""
        rng = self.rng
        text, names = self.command()
        how = rng.randrange(24)
        if how == 0:
            wrapper = rng.choice(
                [
                    "env",
                    "env -i",
                    "nice -n 2",
                    "timeout 3",
                    "nohup",
                    "command",
                    "stdbuf -oL",
                    "setsid -w",
                    "time",
                    "exec",
                    "builtin",
                    "env X=1",
                ]
            )
            text, names = f"{wrapper} {text}", names | {wrapper.split()[0]}
        elif how == 1:
            value = self.written(
                rng.choice(["-oPWN", "--output=PWN", "small", "./evil", "--compress-program=./evil"]), is_tame=False
            )
            text = f"zq={value}; {text} $zq"
        elif how == 2:
            text = f"for zq in {self.written('-oPWN', is_tame=True)} small; do {text} {rng.choice(['$zq', chr(34) + '$zq' + chr(34)])}; done"
        elif how == 3:
            text, names = (
                f"echo {self.written(rng.choice(['-oPWN', 'small', '-exec']), is_tame=True)} | xargs {text}",
                names | {"xargs"},
            )
        elif how == 4:
            text, names = (
                f"find . -maxdepth 1 -name small -exec {text} {{}} {rng.choice([chr(92) + ';', '+'])}",
                names | {"find"},
            )
        elif how == 5:
            other, more = self.command()
            text, names = f"{text} {rng.choice(['|', '&&', '||', ';', '|&'])} {other}", names | more
        elif how == 6:
            text = rng.choice(["{ %s; }", "( %s )", "! %s", "if %s; then true; fi", "while %s; do break; done"]) % text
        elif how == 7:
            text = f"{text} < {rng.choice(['small', 'orders', '/dev/null'])}"
        elif how == 8:
            text, names = f"cat orders | {text}", names | {"cat"}
        elif how == 9:
            text = f"{text} {self.written(rng.choice(['small', '-oPWN', 'PWN', '--', './src/a']), is_tame=False)}"
        rules = tuple(f"{name} *" for name in sorted(names))
        return Line(
            text,
            (*rules, "echo *", "printf *", "true *", "break *", "zq=*", "X=*", "< *"),
            "+".join(sorted(names)),
        )


WRAPPED = frozenset("sort cat echo wc true".split())


class Judge:
    """Rules that name programs, and what they say to a line."""

    def __init__(self) -> None:
        self._policies: dict[tuple[str, ...], Policy] = {}

    def is_allowed(self, line: Line) -> bool:
        policy = self._policies.get(line.rules)
        if policy is None:
            policy = self._policies[line.rules] = Policy(
                [Rule("run", "allow", {"command": rule}) for rule in line.rules]
            )
        try:
            items = read_command(line.text)
        except UnreadableCommand:
            return False
        return policy.decide("run", [{"command": item} for item in items]).action == "allow"


# Each line has a shell of its own, which is a copy of this one: to begin a new one takes longer than most lines do.
DRIVER = r"""
cd "$CWD" || exit 1
IFS= read -r -d '' small < small
IFS= read -r -d '' victim < victim
number=0
while IFS= read -r -d '' line <&8; do
  printf 'at %s\n' "$number" >&9
  ( eval "$line" ) </dev/null >/dev/null 2>&1 8<&- 9>&-
  sung=(PWN*) one='' other=''
  [[ -f small ]] && IFS= read -r -d '' one < small
  [[ -f victim ]] && IFS= read -r -d '' other < victim
  if (( ${#sung[@]} > 1 )) || [[ $one != "$small" || $other != "$victim" ]]; then
    printf 'sung %s\n' "$number" >&9
    rm -rf PWN[!.]* PWN small victim
    printf '%s' "$small" > small; printf '%s' "$victim" > victim
  fi
  (( ++number ))
done
printf 'end %s\n' "$number" >&9
"""
PATIENCE = 60.0  # seconds without a line that ends: it waits for something, and is left out


class World:
    """A folder with a canary in it, and files that are named like options."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = root / "work"
        self._fill()

    def _fill(self) -> None:
        place = self.place
        shutil.rmtree(place, ignore_errors=True)
        (place / "bin").mkdir(parents=True)
        (place / "src").mkdir()
        evil = f"#!/bin/sh\n: > {place}/PWN_evil\nexec cat 2>/dev/null\n"
        texts = {
            "evil": evil, "bin/evil": evil, "git-zz": evil, "small": "x 1\ny 2\n", "victim": "x\n", "src/a": "x\n", "src/b": "y\n",
            "big": "".join(f"{n} aaaaaaaaaaaa\n" for n in range(3000, 0, -1)), "small.1": ".TH X 1\nx\n", "names": "small\nbig\n",
            "evil.sed": "1e ./evil\n", "evil.awk": 'BEGIN{system("./evil")}\n', "evil.mk": "x:\n\t./evil\n", "Makefile": "all:\n\t@true\n",
            "curlrc": f'url="file://{place}/small"\noutput="PWN"\n', "list": "-oPWN\0", "evil.m4": "syscmd(./evil)\n", "data.json": "{}\n",
            "ok.py": "pass\n", "ok.pl": "1;\n", "ok.js": "1\n", "orders": "-oPWN\n!./evil\n:!./evil\nsystem('./evil')\nw PWN\n", "PWNED": "x\n",
            **dict.fromkeys(FILES, "x\n"),
        }  # fmt: skip
        del texts["PWNED"], texts["PWN.py"]
        texts["PWN.py"] = "x\n"  # what a glob may find; it is not the canary's
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
        for name in ("evil", "bin/evil", "git-zz"):
            (place / name).chmod(0o755)
        quiet = {"cwd": place, "env": self.environment, "check": True, "capture_output": True}
        subprocess.run(["tar", "-cf", "a.tar", "small"], **quiet)  # type: ignore[call-overload]
        subprocess.run(["git", "init", "-q", "."], **quiet)  # type: ignore[call-overload]
        name = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *name, "commit", "-q", "--allow-empty", "-m", "x"], **quiet)  # type: ignore[call-overload]
        subprocess.run(["git", "init", "-q", "--bare", "other.git"], **quiet)  # type: ignore[call-overload]
        with (place / "other.git" / "config").open("a", encoding="utf-8") as config:
            config.write(f"[core]\n\tbare = false\n\tworktree = {place}\n\tfsmonitor = {place}/evil\n")

    @property
    def environment(self) -> dict[str, str]:
        values = {name: value.replace("@CWD@", str(self.place)) for name, value in ENVIRONMENT.items()}
        fixed = {
            "PATH": f"/usr/bin:/bin:{self.place}/bin",
            "CWD": str(self.place),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
        }
        return values | fixed

    def sings(self, lines: Sequence[Line]) -> list[Line]:
        """Run lines, one after the other; those by which the canary was heard."""
        sung: list[Line] = []
        start = 0
        while start < len(lines):
            self._fill()
            numbers, done = self._drive(lines[start:])
            sung += [lines[start + number] for number in numbers]
            start += done
        return sung

    def _drive(self, lines: Sequence[Line]) -> tuple[list[int], int]:
        """The numbers of the lines that sang, and how many were run; one that does not end is the last."""
        with tempfile.TemporaryFile() as script, tempfile.TemporaryFile() as report:
            script.write(b"".join(line.text.replace("@CWD@", str(self.place)).encode() + b"\0" for line in lines))
            script.seek(0)
            ours, theirs = script.fileno(), report.fileno()
            process = subprocess.Popen(
                ["/bin/bash", "-c", f"exec 8<&{ours} 9>&{theirs}; {DRIVER}"],
                env=self.environment, pass_fds=(ours, theirs), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            size = -1
            while process.poll() is None and size != os.fstat(theirs).st_size:
                size = os.fstat(theirs).st_size
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            report.seek(0)
            rows = [row.split() for row in report.read().decode().split("\n") if row]
        sung = [int(number) for kind, number in rows if kind == "sung"]
        last, number = rows[-1]
        return sung, int(number) if last == "end" else int(number) + 1


class Found(NamedTuple):
    """What a run has seen."""

    lines: int
    allowed: int
    sung: list[Line]
    programs: Counter[str]


def run(count: int, seed: int, tell: bool = False) -> Found:
    """Make lines up, judge them, run those that are allowed, and listen."""
    maker, judge = Maker(seed), Judge()
    sung: list[Line] = []
    programs: Counter[str] = Counter()
    generated = allowed = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="effects-") as root:
        world = World(Path(root))
        while generated < count:
            batch: list[Line] = []
            while generated < count and len(batch) < BATCH:
                line = maker.line()
                line = line._replace(text=line.text.replace("@CWD@", str(world.place)))
                generated += 1
                if judge.is_allowed(line):
                    batch.append(line)
                    programs[line.how] += 1
            allowed += len(batch)
            suspects = world.sings(batch)
            sung += [
                line for line in suspects if world.sings([line])
            ]  # by itself: what an earlier one left may have sung
            if tell:
                for line in suspects:
                    print(f"SUNG{'' if line in sung else ' (not again)'} {line.text!r} under {line.rules}", flush=True)
                print(
                    f"{generated} lines, {allowed} allowed and run, {len(sung)} sung, {time.monotonic() - begun:.0f} s",
                    flush=True,
                )
    return Found(generated, allowed, sung, programs)


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    cpu = os.times()
    found = run(count, seed, tell=True)
    spent = os.times()
    seconds = sum(spent[:4]) - sum(cpu[:4])
    print(
        f"{found.lines} lines, {found.allowed} allowed and run ({found.allowed / found.lines:.1%}), {len(found.sung)} sung, {seconds:.0f} CPU s (seed {seed})"
    )
    print(", ".join(f"{name} {times}" for name, times in found.programs.most_common(60)))
    return 1 if found.sung else 0


if __name__ == "__main__":
    sys.exit(main())
