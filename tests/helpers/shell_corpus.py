"""Command lines that do more than `git log`, in as many disguises as we know; and some that do not.

Under the rules "`git log *` is allowed, all else is denied" no line of HOSTILE may pass, and every line of BENIGN must.
"""

from __future__ import annotations

LISTS = [  # a second command, behind any sign that ends the first
    "git log;rm x", "git log; rm x", "git log ;rm x", "git log && rm x", "git log&&rm x", "git log || rm x",
    "git log||rm x", "git log | rm x", "git log|rm x", "git log |& rm x", "git log|&rm x", "git log & rm x",
    "git log&rm x", "git log\nrm x", "git log\n\n\nrm x", "\nrm x\ngit log", "git log \\\n; rm x", "git log;\\\nrm x",
    "git log # nothing\nrm x", "# git log\nrm x", "git log #\\\nrm x", "rm x; git log", "rm x & git log",
    "git log; git log; git log; rm x", "git log | git log | rm x", "git log && git log || rm x", "! rm x", "! git log; rm x",
    "git log;\trm x", "git log\t&&\trm x", "git log;;rm x", "git log\n\trm x", "git log -n 5;rm x", "git log 'x';rm x",
    'git log "x";rm x', "git log x\\;;rm x", "git log \\\\;rm x", "git log \\\\\\\\;rm x", "git log ''&rm x",
    "git log <<<x;rm x",
]  # fmt: skip
GROUPS = [  # commands inside of other commands
    "{ git log; rm x; }", "{ rm x; }", "{ git log; }; rm x", "(git log; rm x)", "(rm x)", "( ( rm x ) )", "((rm x))", "((git log) | (rm x))", "((git log); (rm x))", "((git) + (rm))",
    "(git log) && (rm x)", "(git log)|(rm x)", "if git log; then rm x; fi", "if rm x; then git log; fi",
    "if git log; then git log; else rm x; fi", "if git log; then git log; elif rm x; then git log; fi",
    "while git log; do rm x; done", "while rm x; do git log; done", "until git log; do rm x; done",
    "for i in 1 2; do rm x; done", "for i in 1 2; do git log; done", "for i in $(rm x); do git log; done",
    "for i; do rm x; done", "for ((i=0;i<9;i++)); do rm x; done", "for ((;;)); do git log; rm x; done",
    "select i in a; do rm x; done", "case a in a) rm x;; esac", "case $(rm x) in *) git log;; esac",
    "case a in (a) git log;; *) rm x;; esac", "case a in a) git log;& b) rm x;; esac", "case a in $(rm x)) git log;; esac",
    "case a in a) git log ;;& *) rm x;; esac", "{ git log\nrm x\n}", "{ git log & rm x & }", "(git log\nrm x)",
    "{\nrm x\n}", "if git log\nthen rm x\nfi", "while git log\ndo rm x\ndone", "(git log;) ; (rm x;)", "{ { { rm x; }; }; }",
    "( git log; ( git log; ( rm x ) ) )", "! { rm x; }", "! (rm x)", "{ rm x; } | git log", "git log | { rm x; }",
    "git log | while read l; do rm $l; done", "git log | (rm x)", "while :; do git log; done", "true && git log",
    "[[ -f x ]] && git log", "[ -f x ] && git log", "test -f x && git log", "[[ $(rm x) ]] && git log",
    "[ $(rm x) ] && git log", "[[ -v a[$(rm)] ]] && git log", "[[ a -eq 'a[$(rm)]' ]]", "test -v 'a[$(rm)]'",
]  # fmt: skip
SUBSTITUTIONS = [  # commands inside of words
    "git log $(rm x)", "git log `rm x`", 'git log "$(rm x)"', 'git log "`rm x`"', "git log --format=$(rm x)",
    'git log "a$(rm x)b"', 'git log a"b$(rm x)"c', "git log $(git log $(rm x))", "git log `git log \\`rm x\\``",
    "git log $( rm x )", "git log $(\nrm x\n)", "git log $(# comment\nrm x)", "git log $(git log; rm x)", "git log $((1+$(rm x)))",
    "git log $((a[$(rm x)]))", "git log $[1+$(rm x)]", "git log $[a[`rm x`]]", "git log ${x:-$(rm x)}", "git log ${x:=`rm x`}",
    'git log "${x:-$(rm x)}"', "git log ${x:+$(rm x)}", "git log ${x#$(rm x)}", "git log ${x/a/$(rm x)}", "git log ${a[$(rm x)]}",
    "git log ${x:$(rm x)}", "git log ${x:0:$(rm x)}", "git log ${#a[$(rm x)]}", "git log ${x@P}", "git log ${!x}",
    "git log ${!x@}", "x='$(rm x)'; git log ${x@P}", "git log <(rm x)", "git log >(rm x)", "git log < <(rm x)",
    "git log > >(rm x)", "git log | git log >(rm x)", "git log $(<file)", "git log $(< file)", "git log `<file`",
    "git log $(>file)", "git log $(:)", "a=$(rm x) git log", "a=`rm x`", "a=( $(rm x) ); git log", "a=([0]=$(rm x))",
    "a[$(rm x)]=1", "a[`rm x`]=1 git log", "((a[$(rm x)]))", "((x=$(rm x)))", "let 'a[$(rm x)]'", "let x=1; git log",
    "git log ${x-`rm x`}", "git log ${x?$(rm x)}", "git log ${x%%$(rm x)}", "git log ${x^^$(rm x)}", "git log $((x))",
    "git log $((x=1))", "git log ${x:=y}", "git log ${PATH:=/tmp}", "git log ${x:a}", "git log ${x:0:i}", "git log ${x[i]}",
    "git log ${ rm x; }", "git log ${| rm x; }", 'git log "$(echo "$(rm x)")"', 'git log "$(echo ")" ; rm x)"',
    "git log $(case a in a) rm x;; esac)", "git log \"${x:-\"$(rm x)\"}\"", "git log '$(git log)'$(rm x)",
    "git log \\$(rm x)", "git log \\\\$(rm x)", 'git log "\\\\$(rm x)"', "git log $$(rm x)", "git log $(rm x",
    "git log $'a'$(rm x)", "git log $\"$(rm x)\"", "git log a$(rm x)`rm y`<(rm z)",
]  # fmt: skip
REDIRECTS = [  # a file is read or written
    "git log > x", "git log >x", "git log>x", "git log >> x", "git log >>x", "git log >| x", "git log &> x", "git log &>> x",
    "git log >& x", "git log 2> x", "git log 2>x", "git log 2>> x", "git log 1>x", "git log 3<> x", "git log <> x", "git log < x",
    "git log <x", "git log 0<x", "> x git log", ">x git log", "2>x git log", "<x git log", "git >x log", "git > x log", "> x", ">x",
    "git log > $X", 'git log > "$X"', "git log > $(rm x)", "git log {fd}> x", "git log {fd}<x", "(git log) > x", "{ git log; } > x",
    "git log 2>&1 > x", "git log > x 2>&1", "git log > ~/x", "git log > /dev/tcp/host/80", "git log < /dev/tcp/host/80",
    "git log >x>y", "git log >'x'", 'git log >"x"', "git log >\\x", "git log > \\\n x", "git log \\\n> x", "git log >&x", "git log 2>&x",
    "git log <&$X", "git log >&$X", "git log | git log > x", "git log > x | git log", "git log > x; git log", "exec > x", "exec 3<> x",
    "git log <<< x", "git log <<<$(rm x)", 'git log <<<"$(rm x)"', "while git log; do git log; done > x", "if git log; then git log; fi > x",
    "git log > x y", "git log >* ", "git log >{a,b}", "git log 10>x", "git log >&1x", "f() { git log; } > x",
]  # fmt: skip
HEREDOCS = [
    "git log <<E\nx\nE", "git log <<'E'\nx\nE", "git log <<E\n$(rm x)\nE", "git log <<E\n`rm x`\nE", "git log <<E\n${x:-$(rm x)}\nE",
    "git log <<E\nE\nrm x", "git log <<'E'\nx\nE\nrm x", "git log <<E; rm x\nx\nE", "git log <<E | rm x\nx\nE", "git log <<E && rm x\nx\nE",
    "git log <<-E\n\tx\n\tE\nrm x", "git log <<-E\n\tx\nE\nrm x", "git log <<E <<F\nx\nE\ny\nF\nrm x", "git log <<E\nx\nE \nE\nrm x",
    "git log <<E\nx\\\nE\nE\nrm x", "git log <<'E'\nx\\\nE\nrm x\nE", "git log <<\\E\nx\nE\nrm x", "git log <<\"E\"\nx\nE\nrm x",
    "git log <<E'F'\nx\nEF\nrm x", "git log <<$X\nx\n$X\nrm x", "git log << E\nx\nE\nrm x", "git log <<E\nrm x", "bash <<E\nrm x\nE",
    "sh <<'E'\nrm x\nE", "git log $(git log <<E\nx\nE\nrm x\n)", "git log <<E 'a\nb'\nx\nE\nrm x", "git log <<E\n  E\nE\nrm x", "<<E git log\nx\nE",
    "git log <<-E\n\tE\nrm x\nE", "git log <<-E\n\tx\n\t\tE\nrm x\n\tE", "git log <<-'E'\n\tE\nrm x\nE", "git log <<E\nx\nE\nrm x\nE",
    "git log <<E\n\nE\nrm x\nE", "git log <<E\n$X\nE\nrm x\nE", "git log <<E\n$X E\nE\nrm x\nE", "git log <<E\n$(git log)\nE\nrm x\nE", "git log <<E\n$X\n\nE\nrm x\nE",
    "git log <<E > x\nx\nE", "git log <<''\nx\n\nrm x", "cat <<E | sh\nrm x\nE",
]  # fmt: skip
ASSIGNMENTS = [  # what changes how git runs
    "PAGER=evil git log", "GIT_PAGER=evil git log", "GIT_SSH_COMMAND=evil git log", "PATH=/tmp git log", "PATH=/tmp:$PATH git log",
    "PATH=/tmp; git log", "export PATH=/tmp; git log", "declare -x PATH=/tmp; git log", "typeset PATH=/tmp; git log", "readonly A=b; git log",
    "local A=b; git log", "export 'PATH=/tmp'; git log", "LD_PRELOAD=./x.so git log", "IFS=o; git log", "IFS=, git log", "A=1 B=2 git log",
    "A= git log", "A+=b git log", "a[0]=1 git log", "A='x y' git log", 'A="$(rm x)" git log', "for PATH in /tmp; do git log; done",
    "select PATH in /tmp; do git log; done", "read PATH; git log", "read -r PATH <<< /tmp; git log", "mapfile PATH; git log",
    "printf -v PATH /tmp; git log", "printf -v 'a[$(rm)]' x; git log", "getopts x PATH; git log", "unset PATH; git log", "unset 'a[$(rm)]'",
    "BASH_ENV=x bash -c 'git log'", "ENV=x sh -c 'git log'", "GIT_DIR=/tmp git log", "HOME=/tmp git log", "declare -n git=rm; git log",
    "declare -i x='a[$(rm)]'", "declare 'a[$(rm)]=1'", "PROMPT_COMMAND=rm git log", "A=b", "A=b; git log", "git log; A=b", "export A",
    "set -x; git log", "set -- rm; git log", "cd /tmp; git log", "cd /tmp && git log", "pushd /tmp; git log", "PS4='$(rm x)'; set -x; git log",
    "a=(1 2) ; git log", "declare -a a=(1 2); git log", "env A=b git log", "export A=$(rm x)",
]  # fmt: skip
NAMES = [  # what is meant by git here is something else
    "git() { rm x; }; git log", "git () { rm x; }; git log", "function git { rm x; }; git log", "function git() { rm x; }\ngit log",
    "git() ( rm x ); git log", "git() if rm x; then git log; fi", "f() { rm x; }; f", "f() { git log; }", "alias git=rm; git log",
    "shopt -s expand_aliases\nalias git=rm\ngit log", "alias git='git log; rm x #'\ngit log", "alias git='!rm'", "hash -p /bin/rm git; git log",
    "enable -f ./x.so git; git log", "$X log", "${X} log", "$(echo rm) x", "`echo rm` x", "g$X log", 'g"$X" log', "g${X}it log", "git$X log",
    "$'\\x72m' x", "$'rm' x", "$'\\162\\155' x", "$'\\u0072m' x", "r''m x", 'r""m x', "r\\m x", "'rm' x", '"rm" x', "\\rm x", "r\\\nm x", "\\r\\m x",
    "{rm,x}", "{r,}m x", "{git,rm} log", "{git,log}", "r{m,} x", "/bin/r? x", "/bin/r[m] x", "/b*/rm x", "*", "?", "[g]it log", "~/git log", "./git log",
    "../git log", "/tmp/git log", "bin/git log", "./git\\ log", "'git log'", '"git log"', "git\\ log", "git' log'", "gitlog", "git-log", "GIT log",
    "Git log", "gIT log", "git LOG", "git Log", "GIT LOG", "!! log", "!git", "git.exe log", "-git log", "=git log", "%1", "git\\\tlog", "git'\t'log",
    "$0 log", "$_ log", "${!#} log", "$@", '"$@"', "$* log", "''  log", "'' git log", '"" git log', "$'' git log", "$EMPTY git log", "${EMPTY} git log",
    "$(true) git log", "`:` git log", "git $EMPTY log", "git ${X:-push}", "git $(echo push)", "git l*", "git {-C,x,push}", "git lo[g]", "git ~log",
    "git $'l\\x6fx'", "git 'log '", "git ' log'", "git ''log''x", "git '' log", "git -c core.pager=rm log", "git -C /tmp log", "git --exec-path=/tmp log",
    "git --git-dir=/tmp log", "git", "git push", "git commit", "git\nlog", "git;log", "git|log", "git&log", "git --no-pager log", "git -- log",
]  # fmt: skip
WRAPPERS = [  # one command runs another
    "sudo git log", "sudo rm x", "sudo -u root git log", "sudo -- git log", "sudo -uroot git log", "sudo A=b git log", "sudo -s", "sudo -i git log",
    "doas git log", "env git log", "env -i git log", "env -u A git log", "env A=b git log", "env -S 'git log'", "env -S'rm x'", "env --split-string='rm x'",
    "env -iS 'rm x'", "env -S 'git log' ; rm", "/usr/bin/env git log", "env - git log", "timeout 5 git log", "timeout -k 5 5 git log",
    "timeout --signal=9 5 git log", "nice git log", "nice -n 5 git log", "nice -5 git log", "ionice -c 3 git log", "nohup git log", "nohup git log &",
    "setsid git log", "stdbuf -oL git log", "time git log", "time -p git log", "time { rm x; }", "time (rm x)", "time A=b git log", "time ! rm x",
    "exec git log", "exec -a x git log", "exec rm x", "command git log", "command -p git log", "command -v git", "builtin git log", "builtin eval 'rm x'",
    "git log | xargs rm", "git log | xargs git log", "git log | xargs", "git log | xargs -I{} rm {}", "git log | xargs -I % sh -c 'rm %'", "xargs -a x git log",
    "xargs -n 1 -P 4 git log", "git log | xargs -i rm {}", "git log | xargs -0 git log", "watch git log", "watch -n 1 git log", "watch 'git log; rm x'",
    "chroot / git log", "unshare -r git log", "flock /tmp/x git log", "flock x -c 'rm x'", "parallel git log", "git log | parallel rm", "busybox rm x",
    "busybox git log", "toybox rm x", "busybox sh -c 'git log'", "ssh host git log", "ssh host rm x", "ssh -p 22 host 'git log; rm x'",
    "ssh -o ProxyCommand='rm x' h git log", "su -c 'git log'", "su root -c 'rm x'", "su - -c 'git log'", "script -c 'git log' x", "script -qc 'rm x' /dev/null",
    "find . -exec git log {} \\;", "find . -exec rm {} +", "find . -exec rm {} ';'", "find . -execdir git log \\;", "find . -ok git log \\;", "find . -delete",
    "find . -exec git log \\; -exec rm x \\;", "find . -exec sh -c 'rm {}' \\;", "strace git log", "strace -o x git log", "gdb --args git log", "ltrace git log",
    "taskset 1 git log", "sudo sudo sudo git log", "sudo env nice git log", "env sudo -u x timeout 5 rm x", "coproc git log", "coproc rm x",
    "coproc { rm x; }", "coproc X { git log; rm x; }", "coproc X (rm x)", "sudo $X git log", "sudo -u $X git log", "env $X git log", "timeout $X git log",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "SUDO git log", "\\sudo git log", "'sudo' git log", "s\\udo git log", "nsenter -t 1 git log", "systemd-run git log",
]  # fmt: skip
SCRIPTS = [  # a command line in a word
    "bash -c 'git log'", "bash -c 'git log; rm x'", "sh -c 'rm x'", "sh -c 'git log'", "bash -lc 'git log'", "bash -xec 'rm x'", "bash -c -e 'rm x'",
    "bash -o pipefail -c 'git log; rm x'", "bash --norc -c 'rm x'", "bash --rcfile x -c 'rm x'", "bash -c \"git log $X\"", 'bash -c "$X"', "bash -c $X",
    "bash -c 'git log' git log", "bash -c 'bash -c \"rm x\"'", "bash -c 'eval \"rm x\"'", "/bin/bash -c 'git log'", "dash -c 'git log'", "zsh -c 'git log'",
    "fish -c 'git log'", "bash", "sh", "bash -s", "bash -", "bash -i", "git log | sh", "git log | bash", "git log | bash -s x", "git log | sudo sh", "bash x.sh",
    "bash <(git log)", "bash /dev/stdin", "bash <<< 'rm x'", ". x", "source x", ". /dev/stdin", "source <(git log)", ". <(rm x)", "eval git log",
    "eval 'git log'", "eval rm x", "eval 'rm' x", "eval \"$X\"", "eval $X", "eval git log ';' rm x", "eval 'git log;' 'rm x'", "eval eval eval git log",
    "eval -- rm x", "trap 'rm x' EXIT", "trap 'rm x' EXIT; git log", "trap rm EXIT; git log", "trap - EXIT; git log", "trap \"$X\" EXIT; git log",
    "python -c 'import os'", "perl -e 'system(\"rm\")'", "awk 'BEGIN{system(\"rm\")}'", "git log | python", "exec bash", "exec sh -c 'git log'",
    "sh -c 'sh -c \"sh -c rm\"'", "bash -c", "sh -c '((rm x))'", "mapfile -C rm -c 1 a; git log", "complete -C rm git; git log", "bind -x '\"x\": rm'",
]  # fmt: skip
POWERS = [  # what its own options run or write
    "git log --output=x", "git log --outp x", "git log -p --ext-diff", "git log --oneline --output=x -- y", "git log | xargs git log",
]  # fmt: skip
CHARACTERS = [  # not what it looks like
    "git log\r", "git\r log", "git log\r\nrm x", "git log\rrm x", "git log \x00; rm x", "git\x00log", "git log \x1b[2K", "git log \x08", "git log \x7f",
    "git log \x0b rm", "git log \x0c; rm x", "git\u00a0log", "git log\u00a0x", "git\u2003log", "git\u3000log", "git log\u2028rm x", "git log\u2029rm x",
    "git log\u0085rm x", "git\u200blog", "g\u200bit log", "git log \u200b", "git log \u202erm", "git log \u2066x\u2069", "\ufeffgit log", "g\u00adit log",
    "git\u2060 log", "git log \u061c", "git log \U000e0041", "g\u0456t log", "git l\u043eg", "\uff47\uff49\uff54 log", "git \uff4c\uff4f\uff47", "g\u0131t log",
    "gi\u0442 log", "git log\uff1b rm x; rm y", "git log\u037e; rm x", "git log \u115f", "git log \u3164", "git log \ufe0f", "git\u2800log", "git log\u180e",
    "g\u0307it log", "git log \ud800x".encode("utf-8", "ignore").decode() + "; rm x", "git\u1680log", "git log \x9b", "\u200bgit log", "git log\u200d;rm x",
]  # fmt: skip
BROKEN = [  # no shell would read it, or each in its way
    "git log '", 'git log "', "git log `", "git log $(", "git log ${", "git log $((", "git log (", "git log )", "git log &&", "git log ||", "git log |",
    "&& git log", "| git log", "; git log", "git log ;;", "{ git log", "{ git log }", "{git log; }", "git log; }", "if git log", "fi", "do git log", "then rm x",
    "git log \\", "git log <", "git log >", "git log <<", "git log <<<", "case x in", "for x in", "function", "() { rm x; }", "git log $'", "[[ git log", "((1", "! !",
    "git log (rm x)", "git log {rm x}; rm y", "git log a(rm x)", "git log !(rm x)", "git log @(a|b)", "git log +(a)", "time", "coproc", "in", "esac",
    "git log " + "$(" * 70 + "rm x" + ")" * 70, "git log; " * 70 + "git log", "git log " + "a" * 17_000, "(" * 80 + "git log" + ")" * 80, "a=b=c git log",
    "git log & & rm x", "git log &;rm x", "git log |; rm x", "git log 1>&2 2>&1x>y",
]  # fmt: skip

HOSTILE = [
    *LISTS, *GROUPS, *SUBSTITUTIONS, *REDIRECTS, *HEREDOCS, *ASSIGNMENTS, *NAMES, *WRAPPERS, *SCRIPTS, *POWERS, *CHARACTERS, *BROKEN
]  # fmt: skip

BENIGN = [
    "git log", " git log ", "\tgit\tlog", "git log\n", "\n\ngit log", "git log --oneline -n 5", "git log -5", "git log 'a b'", 'git log "x"', "git log ''",
    "git log a\\ b", "git log \\\n --oneline", "git log \\\n  --oneline \\\n  -n 5", "git log # nothing", "# git\ngit log", "git log | git log", "git log; git log",
    "git log && git log", "git log || git log", "git log & git log", "git log &", "git log;", "git log\ngit log", "(git log)", "{ git log; }", "( git log; git log )",
    "! git log", "if git log; then git log; fi", "while git log; do git log; done", "until git log; do git log; done", "git log 2>&1", "git log >&2", "git log 2>&-",
    "git log 2>&1 | git log", "g'i't log", 'g"i"t log', "\\git log", "'git' log", 'git "log"', "git lo\\g", "$'git' log", "$'\\x67it' log", "git $'l\\157g'",
    "git log $X", 'git log "$X"', "git log ${X}", 'git log "${X:-y}" z', "git log *.py", "git log src/**", "git log {a,b}", "git log ~/x", "git log a=b", "git log A=b",
    "git log HEAD~3..HEAD", "git log HEAD^", "git log HEAD@{1}", "git log --format='%h %s'", 'git log --format="%h %an"', "git log --since=2.weeks", "git log -- a b",
    "git log $(git log)", 'git log "$(git log -1)"', "git log `git log`", "git log <(git log)", "git log ${X%.*}", "git log $((1+1))", "git log -n$((2*3))", "git log '$(rm x)'",
    "git log '; rm x'", 'git log "; rm x"', "git log \\; rm x", "git log 'rm' x", "git log '`rm x`'", 'git log "\\$(rm x)"', 'git log "\\`rm x\\`"', "git log \\$x", "git log '>' x",
    "git log \\> x", "git log a#b", "git log '#' x", "git log !x", "git log 'é' ü", "git log 日本", "case a in a) git log;; *) git log;; esac", "git log 'a\nrm x'", "git {log,push}", "git log x{a,b}",
]  # fmt: skip

# Of these only the shell knows the words, and git has options that run and write: they are asked about.
ASKED = [
    "git log $X", 'git log "$X"', "git log ${X}", 'git log "${X:-y}" z', "git log *.py", "git log ~/x", "git log $(git log)", 'git log "$(git log -1)"',
    "git log `git log`", "git log ${X%.*}", "git log $((1+1))", "git log -n$((2*3))",
]  # fmt: skip
