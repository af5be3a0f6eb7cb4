"""Options by which a program runs a command or writes a file are judged by themselves."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Policy, Rule, Subject
from everturn.core.rules.subjects import build_cases
from everturn.permissions.shell.awk_sed import has_awk_capability, has_sed_capability
from everturn.permissions.shell.capabilities import has_capabilities
from everturn.permissions.shell.command_line import UnreadableCommand, read_command
from everturn.permissions.shell.wrappers import GUESSED, WRAPPERS
from everturn.running.permissions import READ_ONLY_PROGRAMS, offer_grants

POWERFUL = [
    "awk 'BEGIN{system(\"rm x\")}'",
    "awk 'BEGIN{ system (\"rm\") }' f",
    "awk -f x.awk f",
    "gawk -l filefuncs x",
    "/usr/bin/awk '{print > \"f\"}'",
    "awk '{print | \"sh\"}'",
    "awk 'BEGIN{\"date\" | getline x}'",
    "awk '@load \"x\"'",
    'awk "$P" f',
    'awk -v x=1 "$P" f',
    "busybox awk 'BEGIN{system(\"x\")}'",
    "sed -i s/a/b/ f",
    "sed -ni p f",
    "sed --in-place=.bak p f",
    "sed --in p f",
    "sed -n 'e rm x'",
    "sed -n '1e rm' f",
    "sed -n w/tmp/x f",
    "sed 's/a/b/e' f",
    "sed 's/a/b/w out' f",
    "sed -e p -e 'w x'",
    "sed -f s f",
    'sed "$S" f',
    "sed '/x/w y' f",
    "sed '/[/]w x/p' f",
    "sed -s --exp='w x' f",
    "sed -E -e's/a/b/ge' f",
    "sed p -e 'w x'",
    "sort --compress-program=sh x",
    "sort --comp=sh x",
    "sort -o out x",
    "sort -no out x",
    "sort x -oout",
    "tar tf x --checkpoint-action=exec=sh",
    "tar tf x -I 'sh -c id'",
    "tar tIf sh x",
    "tar -xf x --to-command=sh",
    "tar --use-comp=sh -tf x",
    "tar -tf x -T list",
    "man -P sh ls",
    "man --html=sh ls",
    "man -Hsh ls",
    "less +!sh x",
    "more +'!sh' x",
    "less -ofile x",
    "find . -delete",
    "find . -fprint x",
    "find . -fprintf /tmp/x a",
    "git log --output=/tmp/x",
    "git log --outp=x",
    "git diff --ext-diff",
    "git -c core.pager=sh log",
    "git --exec-path=/x log",
    "git --config-env=a=b log",
    "git fetch --upload-pack=sh x",
    "git clone -u sh x",
    "git grep -Osh x",
    "git rebase -x sh",
    "git bisect run sh",
    "git submodule foreach ls",
    "rsync -e sh a b",
    "rsync -av --rsh=sh a b",
    "scp -o ProxyCommand=sh a b",
    "scp -S sh a b",
    "curl -o x u",
    "curl -sSLo x u",
    "curl -K f",
    "curl -O u",
    "curl --config f",
    "wget -O x u",
    "wget -qO- u",
    "wget -e x u",
    "vim -c '!sh' x",
    "vim +'!sh' x",
    "vi -es -c x",
    "vim x",  # without a terminal, what comes in is its orders
    "vim +10 x",
    "python -c x",
    "python3.11 -m http.server",
    "python3 -W ignore -c x",
    "python -ic x",
    "python",
    "python -u -",
    "python -u - x",
    "python --",
    "perl -e x",
    "perl -ne x f",
    "perl -pi f.pl",
    "ruby -ne x",
    "node -e x",
    "node --title x -e y",
    "node --eval=x",
    "node",
    "php -r x",
    "lua -e x",
    "echo a | xargs git log",
    "echo a | xargs -I{} sort {}",
    "rg --pre sh x",
    "fd -x rm",
    "split --filter=sh x",
    "zip x -T -TT sh",
    "make --eval=x",
]
PLAIN = [
    "awk '{print $1}' f",
    "awk -F: '{print $1}' /etc/passwd",
    "awk -F@ '{print $1}' f",
    "awk '$1 > 5 {print $1}' f",
    "awk '/a|b/' f",
    "awk -v x=1 '{print x}' system.log",
    "sed -n 1,5p f",
    "sed -n '/a/,/b/p' f",
    "sed 's/a/b/g' f",
    "sed 's|/a|/b|; s,x,y,2' f",
    "sed -e p -e 's/[[:space:]]*$//' f",
    "sed 's/[\\/]/_/g' f",
    "sed -E 's/(a|b)+/\\1/' f",
    "sed ':a;N;$!ba;s/\\n/ /g' f",
    "sed '$d' f",
    "sed y/abc/def/ f",
    "sed '1i hello world' f",
    "sed -n -- p f",
    "sed \"s/a/b/\" 'w x'",
    "sort -k2,2 -t, f",
    "sort -rn f",
    "sort -u -- -o",
    "tar tf x",
    "tar -xzf x -C d",
    "tar tvf x --checkpoint=1",
    "man ls",
    "man 3 printf",
    "less f",
    "less -R f",
    "less +G f",
    "find . -name '*.py' -print0",
    "git log -c",
    "git log --oneline -- -x --output=x",
    "git diff --text",
    "git grep -n x",
    "git -C d log",
    "git commit -m 'x -o --output=y'",
    "curl -s u",
    "curl --cookie a=b u",
    "curl -H 'a: o' u",
    "wget -q u",
    "python x.py -c y",
    "python -u x.py",
    "python3 --version",
    "python -W ignore x.py",
    "perl x.pl -e",
    "node x.js -e y",
    "node -v",
    "ruby x.rb",
    "rg x",
    "rg --pretty x",
    "fd x",
    "find . -exec sed -n 1p {} +",
    "rsync -av a b",
    "ssh -p 22 h ls",
    "xargs rm",
    "xargs grep x",
    "xargs sort --",
    "make -j4 all",
]


def judge(line: str, *rules: tuple[str, str]) -> str:
    policy = Policy([Rule("run", action, {"command": pattern}) for action, pattern in rules])  # type: ignore[arg-type]
    return policy.decide(
        "run", build_cases({"command": "command"}, {"command": line}, read_command, policy.names)
    ).action


def powers_of(line: str) -> list[Subject]:
    return [item for item in read_command(line) if item.words[0].startswith("!")]


def is_allowed_by_names(line: str) -> bool:
    """Whether a rule for each program of a line is enough: those who write it think of what the programs are for."""
    try:
        names = {item.words[0] for item in read_command(line) if not item.words[0].startswith("!")}
        return judge(line, *(("allow", f"{name} *") for name in names)) == "allow"
    except UnreadableCommand:
        return False


@pytest.mark.parametrize("line", POWERFUL)
def test_a_rule_for_a_program_does_not_cover_what_its_options_run_or_write(line: str) -> None:
    assert not is_allowed_by_names(line)


@pytest.mark.parametrize("line", PLAIN)
def test_what_a_program_is_for_needs_no_other_rule(line: str) -> None:
    assert is_allowed_by_names(line)


def test_a_power_is_an_item_of_its_own_with_its_option_first() -> None:
    [git] = powers_of("git log --output=x a")
    assert git == Subject(
        "command",
        "git writes a file (--output=x): git log --output=x a",
        ("!git", "--output=x", "log", "a"),
        option_of=("git", "log", "--output=x", "a"),
    )
    [awk] = powers_of("""/usr/bin/gawk 'BEGIN{system("rm")}' f""")
    assert awk.words == ("!awk", 'BEGIN{system("rm")}', "f")
    assert awk.text.startswith("awk runs a command (BEGIN{system(")


def test_a_power_is_allowed_by_its_own_rule_and_denied_by_that_of_its_program() -> None:
    line = "sed -n -i p f"
    assert judge(line, ("allow", "sed *")) == "ask"
    assert judge(line, ("allow", "!sed *")) == "ask"
    assert judge(line, ("allow", "sed *"), ("allow", "!sed -i *")) == "allow"
    assert judge(line, ("allow", "sed *"), ("allow", "!sed -f *")) == "ask"
    assert judge(line, ("deny", "sed *"), ("allow", "*")) == "deny"
    assert judge(line, ("deny", "!sed *"), ("allow", "*")) == "deny"
    assert judge(line, ("allow", "*")) == "allow"


def test_no_command_can_pass_for_a_power() -> None:
    for line in ("'!sed' -i x", "\\!sed -i x", "sudo '!sed' x"):
        with pytest.raises(UnreadableCommand, match="looks like other syntax"):
            read_command(line)


def test_words_that_come_in_by_xargs_may_be_options() -> None:
    assert [item.words for item in powers_of("xargs tar tf x")] == [("!tar", "⟪{}⟫", "tf", "x")]
    assert powers_of("xargs tar tf x --") == []
    assert powers_of("xargs grep x") == []


# Scripts ----------------------------------------------------------------------------------------------------------

SED_PIECES = [
    "s/a/b/",
    "s|a|b|",
    "/x/",
    "w f",
    "e",
    "1,2",
    "p",
    "y/a/b/",
    "s/[/]/",
    "$!",
    "a x",
    "b l",
    ":l",
    "i\\",
    "c\\\n",
]
SED_LETTERS = list("s///wWep\\[]^\n;{}ab1,$!y| xgic:t#~IM=d&")
AWK_PIECES = [
    "{",
    "}",
    "print",
    ">",
    "|",
    '"f"',
    "getline",
    "system",
    "(",
    ")",
    "x",
    ";",
    "/a|b/",
    "$1",
    "<",
    "@",
    " ",
    "BEGIN",
    "\n",
]


def needs_gnu(name: str) -> pytest.MarkDecorator:
    """Only theirs have a sandbox, which refuses what runs or writes."""
    path = shutil.which(name)
    found = subprocess.run([path, "--version"], capture_output=True, check=False).stdout if path else b""
    return pytest.mark.skipif(b"GNU" not in found, reason=f"there is no GNU {name}")


def refused(program: list[str], script: str) -> str:
    done = subprocess.run(
        [*program, script, "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
        stdin=subprocess.DEVNULL,
    )
    return done.stderr if "sandbox" in done.stderr else ""


@needs_gnu("sed")
def test_sed_has_no_power_in_a_script_that_is_taken_for_plain() -> None:
    assert refused(["sed", "--sandbox", "-n"], "w f")
    chance = random.Random(7)
    pieces = [*SED_PIECES * 2, *SED_LETTERS]
    scripts = {"".join(chance.choices(pieces, k=chance.randint(1, 8))) for _ in range(3000)}
    plain = [script for script in scripts if not has_sed_capability(script) and script]
    assert len(plain) > 400
    assert [script for script in plain if refused(["sed", "--sandbox", "-n", "-e"], script)] == []


@needs_gnu("gawk")
def test_awk_has_no_power_in_a_program_that_is_taken_for_plain() -> None:
    assert refused(["gawk", "--sandbox"], 'BEGIN{print > "f"}')
    chance = random.Random(7)
    programs = {"BEGIN{" + "".join(chance.choices(AWK_PIECES, k=chance.randint(1, 7))) + "}" for _ in range(3000)}
    plain = [
        program for program in programs if not has_awk_capability(program) and "getline" not in program
    ]  # it may read
    assert len(plain) > 400
    assert [program for program in plain if refused(["gawk", "--sandbox"], program)] == []


@given(st.text(alphabet="s/wep\\[]^\n;{}ab1,$!y| @print>system(", max_size=80))
def test_any_script_is_looked_at_in_no_time(text: str) -> None:
    assert has_sed_capability(text * 50) in (True, False)
    assert has_awk_capability(text * 50) in (True, False)


# What `always` offers -------------------------------------------------------------------------------------------


def offered(line: str) -> list[str]:
    spec = ToolSpec("run", "", {}, subjects={"command": "command"})
    [item] = [item for item in read_command(line) if not item.words[0].startswith("!")][:1]
    return [rule.match["command"] for rule in offer_grants(spec, [{"command": item}], lambda case: True)]


@pytest.mark.parametrize("line", ["ls -la src", "grep -rn foo src", "wc -l *.py", "cat $HOME/x"])
def test_more_of_the_same_command_is_offered_where_a_program_only_shows(line: str) -> None:
    assert offered(line)[1:] == [line.split()[0] + " *"]


@pytest.mark.parametrize(
    "line",
    [
        "python -c x", "python -c x y", "python3 x y", "sudo rm x", "sudo git log", "bash x y", "env a b", "xargs rm x", "rm -rf x", "rm a b",
        "git -C x log", "npm run x", "docker exec x y", "nice rm x", "node x y", "tar tf x", "sed -n p f", "perl -e x", "git config x y", "git log -n 5", "go test x y", "aws s3 ls x", "cargo test --all x",
        "kubectl get pods x", "./ls -la src", "LS -la src",
    ],
)  # fmt: skip
def test_nothing_wider_is_offered_where_it_would_be_for_anything(line: str) -> None:
    assert len(offered(line)) == 1


def test_no_wider_offer_names_a_program_with_powers() -> None:
    assert [name for name in READ_ONLY_PROGRAMS if has_capabilities(name) or name in WRAPPERS or name in GUESSED] == []


def test_the_wider_offer_for_a_path_holds_its_wildcards_to_the_letter() -> None:
    spec = ToolSpec("rm", "", {}, subjects={"path": "path"})
    offers = offer_grants(spec, [{"path": Subject("path", "**/x")}], lambda case: True)
    assert Policy(offers[1:]).decide("rm", [{"path": Subject("path", "etc/passwd")}]).action == "ask"


# An exact rule covers the options of its command ----------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "python3 -m pytest -q",
        ".venv/bin/python -m pytest -q tests/a.py::test_b",
        "sort --compress-program=x f",
        "node -e 1",
    ],
)
def test_always_is_offered_for_one_command_with_options_that_run_something_and_covers_just_that(line: str) -> None:
    spec = ToolSpec("run", "", {}, subjects={"command": "command"})
    cases = [{"command": item} for item in read_command(line)]
    assert len(cases) > 1
    [rule] = offer_grants(spec, cases, lambda case: True)
    assert Policy([rule]).decide("run", cases).action == "allow"
    for other in (f"{line} x", line.rsplit(" ", 1)[0], f"{line}; {line} x", f"env {line}", f"{line} > out"):
        assert Policy([rule]).decide("run", [{"command": item} for item in read_command(other)]).action == "ask"


@pytest.mark.parametrize("pattern", ["python3 *", "python3 -m *", "python3 -m pytest *", "python3 -? pytest -q"])
def test_a_rule_with_a_wildcard_does_not_cover_options_that_run_something(pattern: str) -> None:
    cases = [{"command": item} for item in read_command("python3 -m pytest -q")]
    rule = Rule("run", "allow", {"command": pattern})
    assert Policy([rule]).decide("run", cases).action == "ask"


def test_a_word_that_is_known_only_at_run_time_is_covered_by_no_exact_rule() -> None:
    cases = [{"command": item} for item in read_command('python3 -m "$x"')]
    rule = Rule("run", "allow", {"command": 'python3 -m "$x"'})
    assert Policy([rule]).decide("run", cases).action == "ask"


def test_always_is_offered_for_no_line_of_two_commands() -> None:
    spec = ToolSpec("run", "", {}, subjects={"command": "command"})
    cases = [{"command": item} for item in read_command("python3 -m pytest -q; make")]
    assert offer_grants(spec, cases, lambda case: True) == ()
