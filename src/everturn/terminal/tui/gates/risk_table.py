"""Risk patterns for commands, paths and URLs, as data: the same table that the web UI has.

The patterns are those of web/src/gates/risks.ts, letter by letter, and a test compares them; `<NAME>` and similar
stand for pieces that many patterns share. `risks` reads the patterns the way a browser does.
"""

from __future__ import annotations

from typing import Final, Literal

Level = Literal["high", "look"]
Row = tuple[str, Level, str, bool]
"""The code of the risk, its level, the pattern, and whether case is ignored."""

SHELL: Final = r"(?:(?:/usr)?/bin/)?(?:ba|z|k|da|fi|c)?sh"
RUNS: Final = r"(?:<SHELL>|python[\d.]*|perl|ruby|node|php|pwsh|powershell)\b"
NAME: Final = (
    r'(?:^|[\s;&|({\`"'
    r"'/])"
)
SECRET_FILES: Final = (
    r"(?:\.ssh\b|id_(?:rsa|dsa|ecdsa|ed25519)\b|\.aws/|\.env(?:\.\w+)?\b|\.netrc\b|\.npmrc\b|\.pypirc"
    r"\b|\.git-credentials\b|\.kube/config|\.docker/config|\.gnupg|/etc/(?:shadow|sudoers|ssl/private)"
    r"|\.(?:ba|z)sh_history|credentials(?:\.json)?\b|\.pem\b|\.p12\b|keychain|/proc/\w+/environ|\.conf"
    r"ig/gcloud)"
)
PIECES: Final = {"<RUNS>": RUNS, "<SHELL>": SHELL, "<NAME>": NAME}

COMMANDS: Final[tuple[Row, ...]] = (
    (
        "delete_all",
        "high",
        (
            r'<NAME>rm\s+(?:-\S+\s+){0,8}(?:--\s+)?["'
            r"']?(?:/|~|\$\{?HOME\}?|\*|\.|\.\.|/\*|[a-z]:\\?)/?\*?["
            r'"'
            r"']?(?=\s|;|&|\||$)"
        ),
        True,
    ),
    (
        "delete_all",
        "high",
        (r"--no-preserve-root|<NAME>format\s+[a-z]:|<NAME>(?:del|rd|rmdir)\s+(?:/\w\s+)*[a-z]:\\"),
        True,
    ),
    ("delete", "high", r"<NAME>rm\s+(?:\S+\s+){0,8}?-(?:[a-z]*r|-recursive)", True),
    (
        "delete",
        "high",
        (r"<NAME>find\b[^|;]*\s-delete\b|<NAME>find\b[^;|]*-exec\w*\s+rm\b|xargs\s+(?:-\S+\s+){0,8}rm\b"),
        True,
    ),
    (
        "delete",
        "high",
        (r"Remove-Item\b.*-Recurse|<NAME>(?:del|rd|rmdir)\s+/s|shutil\.rmtree|<NAME>rsync\b.*--delete"),
        True,
    ),
    ("delete", "look", r"<NAME>(?:rm|unlink|shred|rmdir|truncate|srm)\s", True),
    (
        "remote_code",
        "high",
        (r"\b(?:curl|wget|fetch|lynx|aria2c)\b[^;\n]*\|\s*(?:(?:sudo|env|nohup|tee\s+\S+\s*\|)\s+)*<RUNS>"),
        True,
    ),
    (
        "remote_code",
        "high",
        (
            r'(?:<RUNS>\s+(?:-\w+\s+)*["'
            r"']?|\beval\s+["
            r'"'
            r"']?|\bsource\s+|\.\s+)(?:<\(|\$\(|\`)\s*(?:curl|wget)"
        ),
        True,
    ),
    (
        "remote_code",
        "high",
        (
            r'\b(?:iex|Invoke-Expression)\b|DownloadString|<NAME>(?:bash|sh)\s+-c\s+["'
            r"']?\$\((?:curl|wget)"
        ),
        True,
    ),
    (
        "decoded_code",
        "high",
        (
            r"(?:base64\s+(?:-d|-D|--decode)|base32\s+-d|xxd\s+-r|openssl\s+(?:enc|base64)\s.*-d|gunzip|rev|tr"
            r"\s+\S+\s+\S+)[^;\n]*\|\s*(?:sudo\s+)?<RUNS>"
        ),
        True,
    ),
    (
        "decoded_code",
        "high",
        (
            r'-(?:EncodedCommand|enc)\b|eval\s*["'
            r"']?\$\([^)]*base64|exec\(\s*(?:base64|bytes\.fromhex|__import__|zlib|codecs)"
        ),
        True,
    ),
    ("root", "high", r"<NAME>(?:sudo|doas|pkexec|runas|gsudo)\s|<NAME>su(?:\s+-|\s+root|\s*$|\s+-c)", True),
    (
        "rights",
        "high",
        (r"<NAME>chmod\s+(?:-\S+\s+){0,8}(?:0?[0-7]?777|[augo]*\+[rwx]*s|a\+\w*w|o\+\w*w|[42]\d{3}\b)"),
        True,
    ),
    ("rights", "look", r"<NAME>(?:chmod|chown|chgrp|setfacl|icacls|takeown|chattr|setcap)\s", True),
    (
        "disk",
        "high",
        (
            r"<NAME>dd\b[^;|]*\bof=|<NAME>(?:mkfs(?:\.\w+)?|fdisk|parted|sgdisk|wipefs|blkdiscard|hdparm|diskp"
            r"art|cryptsetup|mkswap)\b"
        ),
        True,
    ),
    ("disk", "high", r">\s*/dev/(?:sd|nvme|hd|vd|mmcblk|disk|mem|kmem)|/dev/(?:sd[a-z]|nvme\d)", True),
    (
        "fork_bomb",
        "high",
        (
            r"([\w:.]+)\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&|while\s+(?:true|:)\s*;?\s*do[^;]*&\s*(?:;|done)|%0\s*\|"
            r"\s*%0"
        ),
        True,
    ),
    (
        "force_push",
        "high",
        (r"\bgit\b[^;&|]*\bpush\b[^;&|]*(?:\s-[a-z]*f\b|--force|--mirror|--delete|\s:\w|\s\+\w)"),
        True,
    ),
    (
        "lost_work",
        "high",
        (
            r"\bgit\b[^;&|]*\b(?:reset\s+(?:\S+\s+){0,6}--hard|clean\s+-\w*[fdx]|checkout\s+(?:--|\.)|restore"
            r"\s|branch\s+-D|stash\s+(?:drop|clear)|filter-branch|filter-repo|reflog\s+(?:expire|delete)|updat"
            r"e-ref\s+-d|gc\s+--prune)"
        ),
        True,
    ),
    (
        "reverse_shell",
        "high",
        (
            r"/dev/(?:tcp|udp)/|\b(?:nc|ncat|netcat)\b[^;|]*\s-\w*[ec]\b|<SHELL>\s+-i\s*(?:>&|0?<)|socat\b.*\b"
            r"exec:|mkfifo\b.*\b(?:nc|ncat|telnet|openssl)\b|socket\.socket.*(?:dup2|pty)"
        ),
        True,
    ),
    ("secrets", "high", SECRET_FILES, True),
    (
        "secrets",
        "look",
        (
            r"<NAME>(?:printenv|env)\s*(?:$|[|>;&])|<NAME>(?:set|export\s+-p|declare\s+-x)\s*(?:$|[|>])|\$\{?"
            r"\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIAL)\w*|os\.environ|process\.env|"
            r"169\.254\.169\.254|security\s+find-|<NAME>(?:pass|op|gopass|vault)\s+(?:show|read|get|kv)"
        ),
        True,
    ),
    (
        "upload",
        "high",
        (
            r"\bcurl\b[^;|]*(?:\s-(?:d|F|T)\b|\s-[a-z]*[dFT]\s*@|--data|--form|--upload-file|\s-X\s*(?:POST|PU"
            r"T))|\bwget\b[^;|]*--post|<NAME>(?:scp|sftp|rclone|rsync)\b[^;|]*\s\S+:|\b(?:nc|ncat|netcat)\b[^;"
            r"|]*<|aws\s+s3\s+(?:cp|sync|mv)|gh\s+gist|transfer\.sh"
        ),
        False,
    ),
    (
        "network",
        "look",
        (
            r"<NAME>(?:curl|wget|nc|ncat|netcat|ssh|scp|sftp|ftp|telnet|rsync|socat|aria2c|nmap|dig|nslookup|h"
            r"ost|Invoke-WebRequest|iwr|http)\s|https?://|git\s+(?:clone|fetch|pull|push)\b"
        ),
        True,
    ),
    (
        "system",
        "high",
        (
            r'(?:>{1,2}|<NAME>(?:tee|cp|mv|ln|install|sed\s+-i\S*|touch|mkdir|vi|vim|nano)\b[^;|&]*)\s*["'
            r"']?/(?:etc|boot|usr|bin|sbin|lib|lib64|sys|proc|dev(?!/null\b|/std)|var/(?!tmp)|root|System|Libr"
            r"ary)\b"
        ),
        True,
    ),
    (
        "system",
        "high",
        (
            r"<NAME>(?:sysctl\s+-w|insmod|rmmod|modprobe|reg\s+(?:add|delete)|bcdedit|vssadmin|update-grub|kex"
            r"tload|nvram)\b|System32"
        ),
        True,
    ),
    (
        "persistence",
        "high",
        (
            r"<NAME>crontab\s+(?!-l)|systemctl\s+(?:\S+\s+){0,6}enable|launchctl\s+(?:load|bootstrap)|schtasks"
            r"\s+/create|authorized_keys|\.(?:bash|zsh)rc\b|\.(?:bash_|z)?profile\b|/etc/(?:cron|rc\.local|pro"
            r"file|ld\.so\.preload)|\.git/hooks|<NAME>at\s+(?:now|\d)|\.config/autostart|CurrentVersion\\Run"
        ),
        True,
    ),
    (
        "stop",
        "high",
        (
            r"<NAME>(?:shutdown|reboot|halt|poweroff|killall|pkill)\b|<NAME>init\s+[06]\b|<NAME>kill\s+(?:-\S+"
            r"\s+){0,8}(?:-1|1)\b|systemctl\s+(?:stop|disable|mask|poweroff|reboot)|taskkill|Stop-Computer"
        ),
        True,
    ),
    ("stop", "look", r"<NAME>kill\s", True),
    (
        "container",
        "high",
        (
            r"--privileged|docker\.sock|<NAME>(?:nsenter|chroot|unshare)\b|-v\s*/:|--pid[= ]host|--net(?:work)"
            r"?[= ]host|--cap-add|docker\s+(?:system|volume|image)\s+prune"
        ),
        True,
    ),
    (
        "infrastructure",
        "high",
        (
            r"\b(?:terraform|tofu|pulumi)\s+(?:\S+\s+){0,6}(?:destroy|apply|up)\b|kubectl\s+(?:\S+\s+){0,6}(?:"
            r"delete|drain|apply|exec)\b|helm\s+(?:uninstall|delete|upgrade)|aws\s+\S+\s+(?:rm|rb|delete\S*|te"
            r"rminate\S*)|gcloud\b.*\bdelete\b|az\s+\S+.*\bdelete\b|gh\s+repo\s+delete|(?:npm|cargo|twine|gem|"
            r"poetry|uv)\s+(?:publish|upload|push|yank)"
        ),
        True,
    ),
    (
        "database",
        "high",
        (
            r"\bdrop\s+(?:table|database|schema|user|index)\b|\btruncate\s+(?:table\s+)?\w|\bdelete\s+from\s+["
            r'\w."]+\s*(?:;|"|'
            r"'|$)|\bupdate\s+[\w."
            r'"]+\s+set\s+(?!.*\bwhere\b)|FLUSH(?:ALL|DB)|<NAME>dropdb\b|dropDatabase|deleteMany\(\s*\{\s*\}'
        ),
        True,
    ),
    (
        "firewall",
        "high",
        (
            r"<NAME>(?:iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|setenforce|netsh|apparmor_parser|aa-\w+)"
            r"\s|Set-MpPreference|spctl\s+--master-disable|csrutil"
        ),
        True,
    ),
    (
        "accounts",
        "high",
        (
            r"<NAME>(?:useradd|adduser|userdel|usermod|passwd|chpasswd|groupadd|visudo|dscl|gpasswd)\b|net\s+("
            r"?:user|localgroup)\s"
        ),
        True,
    ),
    (
        "traces",
        "high",
        (
            r"history\s+-c|HISTFILE|HISTSIZE=0|\.(?:bash|zsh)_history|(?:>|rm\s.*)\s*/var/log|journalctl\s+--v"
            r"acuum|wevtutil\s+cl|Clear-EventLog"
        ),
        True,
    ),
    (
        "install",
        "look",
        (
            r"\b(?:pip[\d.]*|pipx|uv(?:\s+pip)?|npm|pnpm|yarn|apt(?:-get)?|dnf|yum|apk|pacman|brew|gem|cargo|g"
            r"o|snap|choco|winget|conda|poetry)\s+(?:\S+\s+){0,6}?(?:install|add|i|get|-S\w*)\b|<NAME>(?:npx|u"
            r"vx|bunx|pnpm\s+dlx)\s|make\s+install|setup\.py"
        ),
        True,
    ),
    (
        "disguise",
        "high",
        (
            r"\$\{?IFS\b|\$'[^']*\\(?:x[0-9a-f]|[0-7]{2}|u[0-9a-f])|printf\s+["
            r'"'
            r"'][^"
            r'"'
            r"']*\\x|\becho\s+-\w*e\w*\s+["
            r'"'
            r"'][^"
            r'"'
            r"']*\\(?:x|0)|\$\{[^}]*[:#%/@][^}]*\}\s*\$\{|\beval\b|\$\(\s*(?:echo|printf|rev|tr)\b[^)]*\)\s|\\"
            r"[a-z]{1,2}\\[a-z]|[a-z]['"
            r'"]{2}[a-z]'
        ),
        True,
    ),
    (
        "overwrite",
        "look",
        (
            r"(?<![0-9&>=-])>(?![>&(=])\s*(?!/dev/(?:null|stdout|stderr))[^\s&]|<NAME>(?:mv|tee|cp)\s|sed\s+(?"
            r":-\w+\s+)*-\w*i|<NAME>(?:patch|install)\s"
        ),
        True,
    ),
    (
        "outside",
        "look",
        (
            r'(?:^|[\s=>"'
            r"':])\.\./|(?:^|[\s=>"
            r'"'
            r"'])~[/\w]?|\$\{?HOME\b|(?:^|[\s=>"
            r'"'
            r"'])/(?!dev/null|dev/std|tmp\b)[A-Za-z]"
        ),
        True,
    ),
    ("background", "look", r"<NAME>(?:nohup|setsid|disown|screen\s+-d|tmux\s+new)\b|[^&>|]&\s*(?:$|[^&>\d])", True),
    (
        "nested",
        "look",
        (
            r"\$\((?!\()|\`[^\`]+\`|<\(|\bxargs\b|<SHELL>\s+-\w*c\b|(?:python[\d.]*|perl|ruby|node|php)\s+-(?:"
            r"c|e|r)\b"
        ),
        True,
    ),
)
PATHS: Final[tuple[Row, ...]] = (
    ("path_up", "high", r"(?:^|[\\/])\.\.(?:[\\/]|$)|%2e%2e|\.\.%(?:2f|5c)|%252e|\.\.;", True),
    ("path_odd", "high", r"\0|%00|[^\\/.\s](?:\.|\s)+$|^\\\\|::\$DATA|^file:|^-", True),
    ("path_secret", "high", SECRET_FILES, True),
    (
        "path_runs",
        "high",
        (
            r"\.git/(?:hooks|config)|\.github/workflows|\.gitlab-ci|\.(?:ba|z)shrc|\.(?:bash_|z)?profile|cront"
            r"ab|/cron\.|authorized_keys|/etc/|\.vscode/(?:tasks|settings)|sitecustomize|\.pth$|conftest\.py|a"
            r"utostart|System32"
        ),
        True,
    ),
    ("path_absolute", "look", r"^/|^[a-z]:[\\/]", True),
    ("path_home", "look", r"^~|^\$\{?HOME", True),
)
URLS: Final[tuple[Row, ...]] = (
    ("url_scheme", "high", r"^\s*(?:javascript|data|file|vbscript|gopher|ldap|dict|ftp|jar|blob):", True),
    (
        "url_inside",
        "high",
        (
            r"^[a-z]+://(?:[^/@]*@)?(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|"
            r"0\.0\.0\.0|0(?:[:/]|$)|\[(?:::1|::|f[cde]|::ffff:)|metadata\.google|[^/:?#]*\.(?:local|internal|"
            r"lan|home|corp)(?:[:/]|$)|\d{6,}(?:[:/]|$)|0x[0-9a-f]+(?:[.:/]|$))"
        ),
        True,
    ),
    ("url_login", "high", r"^[a-z]+://[^/?#]*@", True),
    ("url_disguise", "high", r"^[a-z]+://[^/?#]*(?:xn--|[^\x00-\x7f]|%[0-9a-f]{2})|^[a-z]+:\\|^[a-z]+:/?[^/]", True),
    ("url_plain", "look", r"^http://", True),
)
