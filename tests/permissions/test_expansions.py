"""A word that the shell would expand is never judged as the text that it is written as."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
from pathlib import Path

import pytest
from tests.permissions import fuzz_words
from tests.permissions.everyday_commands import ALLOWED, ASKED, REFUSED

from everturn import Chat, tool
from everturn.core.ports import Tool
from everturn.core.rules.patterns import exact_pattern
from everturn.core.rules.policy import Policy, Rule, RuleAction, Subject
from everturn.events import GateOpened
from everturn.permissions.shell.command_line import UnreadableCommand, read_command
from everturn.testing import ScriptedModel, call, calls, say

needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")

# From a review: each was allowed by the rule beside it, and ran ./evil, or wrote a file.
GOT_ROUND = [
    ("sort *", "sort {-S1k,--compress-program=./evil} big"),
    ("sort *", 'sort "${x:---compress-program=./evil}" -S1k big'),
    ("find *", "find . -maxdepth 0 {-exec,./evil,';'}"),
    ("find *", 'find . -maxdepth 0 "${x:--exec}" ./evil \\;'),
    ("find *", 'find . -name victim "${x:--delete}"'),
    ("tar *", "tar cf a.tar {--checkpoint=1,--checkpoint-action=exec=./evil} big"),
    ("tar *", "tar cf a.tar *"),
    ("git grep *", "git grep --no-index {-O./evil,x}"),
    ("git diff *", 'git diff --no-index "${x:---output=pwned_out}" big small'),
    ("rg *", "rg {--pre=./evil,x} ."),
    ("sed *", "sed s/a/pwned/ {-i,victim}"),
    ("env *", "env -iviS'./evil'"),
    ("git *", "git {push,origin}"),
    ("curl *", "curl -A -- -s -qK curlrc"),
    ("sort *", "sort -T -- --compress-program=./evil -T . -S1k big"),
    ("git grep *", "git grep -e -- -O./evil --no-index"),
    ("env *", "env -u X -S./evil"),
    ("find *", "find -- . -name victim -delete"),
    ("printf *", "printf -vPATH ."),
    ("read *", "read -aPATH"),
    ("strace *", "strace -o '|./evil' true"),
]


def judge(line: str, *rules: tuple[RuleAction, str]) -> RuleAction:
    try:
        items = read_command(line)
    except UnreadableCommand:
        return "deny"
    policy = Policy([Rule("run", action, {"command": pattern}) for action, pattern in rules])
    return policy.decide("run", [{"command": item} for item in items]).action


def natural(items: list[Subject]) -> set[str]:
    """The rules that anybody would write for a line: one for each program, redirect and variable."""
    rules: set[str] = set()
    for name, *others in [item.words for item in items if not item.words[0].startswith("!")]:
        variable = re.match(r"[A-Za-z_]\w*=", name)
        rules.add(f"{variable[0]}*" if variable and not others else f"{name} *")
    return rules


def naturally(items: list[Subject]) -> list[tuple[RuleAction, str]]:
    return [("allow", rule) for rule in natural(items)]


def shell(folder: Path) -> Tool:
    """A tool of somebody who has no sandbox."""

    @tool(approval="ask", subjects={"command": "command"})
    async def run(command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", command, cwd=folder, stdin=asyncio.subprocess.DEVNULL
        )
        return str(await process.wait())

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evil").write_text("#!/bin/sh\n: > pwned\ncat\n", encoding="utf-8")
    (tmp_path / "evil").chmod(0o755)
    (tmp_path / "big").write_text("".join(f"{n} x aaaaaaaaaaaaaaaa\n" for n in range(20_000, 0, -1)), encoding="utf-8")
    for name in ("small", "victim", "--checkpoint=1"):
        (tmp_path / name).write_text("a x\n", encoding="utf-8")
    (tmp_path / "--checkpoint-action=exec=.\\057evil").write_text("", encoding="utf-8")
    return tmp_path


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ------------------------------------------------------------------------------------------------------ end to end


@needs_bash
@pytest.mark.parametrize(("rule", "line"), GOT_ROUND)
async def test_what_got_round_a_gate_is_asked_about_or_refused(folder: Path, rule: str, line: str) -> None:
    rules = [Rule("run", "allow", {"command": rule}), Rule("run", "deny", {"command": "git push *"})]
    before, gates = contents_of(folder), 0
    model = ScriptedModel([calls(call("run", command=line))], say("done"))
    async with Chat(model, tools=[shell(folder)], rules=rules) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                gates += 1
                await turn.answer(event.gate, deny=True)
    assert contents_of(folder) == before
    assert gates == (judge(line, ("allow", rule), ("deny", "git push *")) == "ask")
    assert judge(line, ("allow", rule), ("deny", "git push *")) != "allow"


@needs_bash
async def test_always_for_a_literal_word_is_not_for_what_the_shell_makes_of_it(folder: Path) -> None:
    """The person allows a harmless literal for good; the same without quotes runs something."""
    literal, expanded = "git grep --no-index '{-O./evil,x}'", "git grep --no-index {-O./evil,x}"
    model = ScriptedModel([calls(call("run", command=literal))], [calls(call("run", command=expanded))], say("done"))
    arguments: list[str] = []
    async with Chat(model, tools=[shell(folder)]) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                arguments.append(event.gate.arguments)
                if len(arguments) == 1:
                    await turn.answer(event.gate, allow="always")
                else:
                    await turn.answer(event.gate, deny=True)
    assert len(arguments) == 2
    assert not (folder / "pwned").exists()


# ------------------------------------------------------------------------------------ a literal and an expansion

PAIRS = [
    ("grep '$HOME' f", "grep $HOME f"), ("grep '{a,b}' f", "grep $X{a,b} f"), ("cat '*'", "cat *"), ("cat '~/x'", "cat ~/x"),
    ("cat \"\\$X\"", 'cat "$X"'), ("cat '$(ls)'", "cat $(ls)"), ("cat '`ls`'", "cat `ls`"), ("cat '<(ls)'", "cat <(ls)"),
    ("cat '$((1))'", "cat $((1))"), ("A='$X'", "A=$X"), ("> '$X'", "> $X"), ("cat a'$X'", "cat a$X"), ("cat '\"$X\"'", 'cat "$X"'),
    ("for f in '*'; do :; done", "for f in *; do :; done"), ("export A='$X'", "export A=$X"), ("cat $'\\x2a'", "cat *"),
]  # fmt: skip


@pytest.mark.parametrize(("literal", "expanded"), PAIRS)
def test_a_literal_and_an_expansion_are_never_the_same_subject(literal: str, expanded: str) -> None:
    for allowed, other in ((literal, expanded), (expanded, literal)):
        rules = [Rule("run", "allow", {"command": exact_pattern(item)}) for item in read_command(allowed)]
        policy = Policy(rules)
        assert policy.decide("run", [{"command": item} for item in read_command(allowed)]).action == "allow"
        assert policy.decide("run", [{"command": item} for item in read_command(other)]).action == "ask"


def test_no_literal_can_be_written_like_an_expansion() -> None:
    for line in ("cat '⟪*⟫'", "cat ⟪x", "cat $'\\u27eax'", "env -S 'cat ⟪x'", "A=⟪x"):
        with pytest.raises(UnreadableCommand, match="⟪"):
            read_command(line)
    assert read_command("echo 'a⟪b'")[0].expansions == ()


def test_a_word_with_a_mark_is_shown_as_it_was_written() -> None:
    [item] = read_command("grep '$a b' $HOME \"$X\"/*.py")
    assert item.text == "grep '$a b' $HOME \"$X\"/*.py"
    assert item.words == ("grep", "$a b", "⟪$HOME⟫", '⟪"$X"/*.py⟫')


# ---------------------------------------------------------------------------------------- rules about expansions


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("git {push,origin}", "git push *"), ("git $X", "git push *"), ("git p*", "git push *"), ('git "$X" origin', "git push *"), ("git -C . $X", "git -C . push"),
        ("git $(echo push)", "git push *"), ("git pu${X}sh", "git push"), ("git $X push", "git push *"), ("rm $X", "rm -rf *"), ("cat < $X", "< /etc/*"),
        ("cat > \"$X/y\"", "> /etc/*"), ("PATH=$X", "PATH=/evil"), ("cat {a,b,$X}", "cat a b c"), ("rm a*", "rm ab ac"), ("sort $X", "!sort -o *"), ("RM $X", "rm -rf *"),
        ("/bin/rm $X", "rm -rf *"), ("ls <(ls)", "ls /dev/fd/*"), ("xargs rm", "rm -rf *"), ("find . -exec rm {} +", "rm ./x"), ("cat ?", "cat x"), ("cat [ab]c", "cat ac"),
    ],
)  # fmt: skip
def test_a_rule_that_denies_fits_where_an_expansion_could_make_it_fit(line: str, pattern: str) -> None:
    assert judge(line, ("allow", "*"), ("deny", pattern)) == "deny"


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("git log $X", "git push *"), ("git log src/*", "git log -p *"), ("cat a*", "cat b*"), ('cat "x$X"', "cat y*"), ('git "$X" log', "git push -f"), ("cat *.py", "cat *.txt"),
        ("A=$X", "B=*"), ("cat $X", "ls *"), ("cat 'a' \"$X\"", "cat b *"), ("rm *.o", "rm -rf *"),
    ],
)  # fmt: skip
def test_and_not_where_it_could_not(line: str, pattern: str) -> None:
    assert judge(line, ("allow", "*"), ("deny", pattern)) == "allow"


@pytest.mark.parametrize(
    ("line", "pattern", "action"),
    [
        ("cat $X", "cat *", "allow"), ("cat $X y", "cat * y", "ask"), ('cat "$X" y', "cat * y", "allow"), ('cat "$X" y', "cat ? y", "ask"), ("cat a* y", "cat a* y", "ask"),
        ('cat "a$X"', "cat a*", "allow"), ('cat "$X"', "cat a*", "ask"), ("cat $X", "cat '$X'", "ask"), ("cat $X", "cat '⟪$X⟫'", "allow"), ("cat '$X'", "cat '⟪$X⟫'", "ask"),
        ("cat $Xa", "cat '⟪*⟫'", "ask"), ("A=$X", "A=*", "allow"), ("A=$X", "A=x*", "ask"), ("cat > $X", "cat *", "ask"), ("cat {a,b}", "cat a b", "allow"),
    ],
)  # fmt: skip
def test_a_rule_that_allows_fits_an_expansion_where_anything_may_stand(
    line: str, pattern: str, action: RuleAction
) -> None:
    assert judge(line, ("allow", pattern)) == action


@pytest.mark.parametrize(
    "line",
    [
        "sort $X", "sort ${X}", 'sort "$X"', "sort ${X:-y}", 'sort "${X:+y}"', "sort *", "sort *.txt", "sort $(ls)", "sort `ls`", "sort a$X", "sort ~", "sort ~/x", "sort $((1))",
        "sort {a,$X}", "sort {1..3}", 'sort "$@"', "sort -u $X", "sort -T -- $X", "sort --parallel -- $X", "git log -e -- *", "uniq *", "uniq ./a*", "uniq -- $X",
        "uniq a $X", "sed -- $X f", "awk -- $X f", "git $X", "git -C $X log", "python $X", "python <(ls)", "make $X", "xargs sort", "[ $x ]", "find $X", 'find "$X"', "tar $X",
        "curl -w \"$X\" u", "find . -exec sort \"$X\" {} +", "less +$X", "less *", 'git bundle crea"${X}"te PWN', "git bisect ru[n] x",
    ],
)  # fmt: skip
def test_a_word_that_could_be_an_option_of_a_program_with_powers_is_a_power(line: str) -> None:
    items = read_command(line)
    assert any(item.words[0].startswith("!") and (item.expansions or "-T" in line) for item in items)
    assert judge(line, *naturally(items)) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "sort src/*.txt", "sort ./*", 'sort "src/$X"', "sort -u -- $X", "sort -k1 -- *", "sort -T . -- *", "sort -T -T -- *", "sort --reverse -- *", "git log -- *", "git log --oneline -- $X",
        "git log src/*", "sed -n p src/*", "sed -e p -- *", "awk 1 *", "awk -v x=\"$X\" 1 f", "python x.py $X", "uniq -c a", "cat *", "grep -rn foo *.py", "sort <(ls)", '[ "$x" = y ]',
        'find . -exec sort {} +', "find src tests -exec sort {} +", "sort a{b,c}", "printf '%s' $X", "sort HEAD@{1}", "sort {}",
    ],
)  # fmt: skip
def test_and_one_that_could_not_needs_no_rule_of_its_own(line: str) -> None:
    assert judge(line, *naturally(read_command(line))) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "strace -o'|./evil' true",
        "gdb --eval-command='shell ./evil' true",
        "sudo --new true",
        "flock --co=./evil x true",
    ],
)
def test_an_option_of_a_wrapper_that_is_not_known_is_a_power(line: str) -> None:
    assert judge(line, *naturally(read_command(line))) == "ask"


@pytest.mark.parametrize("line", ["env -iviS'./evil'", "env -i0vS ./evil", "env -u X -vivS./evil"])
def test_a_cluster_in_which_env_splits_its_words_is_not_read(line: str) -> None:
    with pytest.raises(UnreadableCommand, match="-S of env"):
        read_command(line)


# ------------------------------------------------------------------------------------------------------ every day


def test_lines_of_every_day_keep_a_usable_answer() -> None:
    assert len({*ALLOWED, *ASKED, *REFUSED}) >= 385
    expected: list[tuple[list[str], RuleAction]] = [(ALLOWED, "allow"), (ASKED, "ask"), (REFUSED, "deny")]
    for lines, action in expected:
        assert [line for line in lines if _by_natural_rules(line) != action] == []
    assert len(ASKED) + len(REFUSED) <= 40


def _by_natural_rules(line: str) -> RuleAction:
    try:
        return judge(line, *naturally(read_command(line)))
    except UnreadableCommand:
        return "deny"


# -------------------------------------------------------------------------------------------------- what bash does


@needs_bash
def test_bash_makes_of_every_word_what_was_read(tmp_path: Path) -> None:
    found = fuzz_words.run(1_500, random.Random(11), tmp_path)
    assert found.wrong == []
    assert found.static > 150
    assert found.expanded > 600
    assert found.braces > 60
