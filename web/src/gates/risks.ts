/** Risk hints for commands, paths and URLs. Pure. A hint points at something; no hint does not mean that it is safe. */

export type RiskCode =
  | "delete" | "delete_all" | "remote_code" | "decoded_code" | "root" | "rights" | "disk" | "fork_bomb" | "force_push" | "lost_work"
  | "secrets" | "network" | "upload" | "reverse_shell" | "overwrite" | "system" | "outside" | "persistence" | "stop" | "install" | "container"
  | "infrastructure" | "database" | "disguise" | "background" | "nested" | "lines" | "firewall" | "accounts" | "traces"
  | "path_up" | "path_absolute" | "path_home" | "path_odd" | "path_secret" | "path_runs"
  | "url_inside" | "url_login" | "url_disguise" | "url_plain" | "url_scheme" | "url_long";

export interface Risk {
  readonly code: RiskCode;
  readonly level: "high" | "look";
  readonly found: string; // the text that it is about
}

type Row = readonly [RiskCode, "high" | "look", RegExp];

const SHELL = String.raw`(?:(?:/usr)?/bin/)?(?:ba|z|k|da|fi|c)?sh`;
const RUNS = String.raw`(?:${SHELL}|python[\d.]*|perl|ruby|node|php|pwsh|powershell)\b`;
const NAME = String.raw`(?:^|[\s;&|({\`"'/])`; // what comes before the name of a program
const SECRET_FILES =
  String.raw`(?:\.ssh\b|id_(?:rsa|dsa|ecdsa|ed25519)\b|\.aws/|\.env(?:\.\w+)?\b|\.netrc\b|\.npmrc\b|\.pypirc\b|\.git-credentials\b|\.kube/config|\.docker/config|\.gnupg|/etc/(?:shadow|sudoers|ssl/private)|\.(?:ba|z)sh_history|credentials(?:\.json)?\b|\.pem\b|\.p12\b|keychain|/proc/\w+/environ|\.config/gcloud)`;

const rows = (list: [RiskCode, "high" | "look", string, string?][]): Row[] =>
  list.map(([code, level, source, flags]) => [code, level, new RegExp(source, flags ?? "i")]);

const COMMANDS: readonly Row[] = rows([
  ["delete_all", "high", String.raw`${NAME}rm\s+(?:-\S+\s+){0,8}(?:--\s+)?["']?(?:/|~|\$\{?HOME\}?|\*|\.|\.\.|/\*|[a-z]:\\?)/?\*?["']?(?=\s|;|&|\||$)`],
  ["delete_all", "high", String.raw`--no-preserve-root|${NAME}format\s+[a-z]:|${NAME}(?:del|rd|rmdir)\s+(?:/\w\s+)*[a-z]:\\`],
  ["delete", "high", String.raw`${NAME}rm\s+(?:\S+\s+){0,8}?-(?:[a-z]*r|-recursive)`],
  ["delete", "high", String.raw`${NAME}find\b[^|;]*\s-delete\b|${NAME}find\b[^;|]*-exec\w*\s+rm\b|xargs\s+(?:-\S+\s+){0,8}rm\b`],
  ["delete", "high", String.raw`Remove-Item\b.*-Recurse|${NAME}(?:del|rd|rmdir)\s+/s|shutil\.rmtree|${NAME}rsync\b.*--delete`],
  ["delete", "look", String.raw`${NAME}(?:rm|unlink|shred|rmdir|truncate|srm)\s`],
  ["remote_code", "high", String.raw`\b(?:curl|wget|fetch|lynx|aria2c)\b[^;\n]*\|\s*(?:(?:sudo|env|nohup|tee\s+\S+\s*\|)\s+)*${RUNS}`],
  ["remote_code", "high", String.raw`(?:${RUNS}\s+(?:-\w+\s+)*["']?|\beval\s+["']?|\bsource\s+|\.\s+)(?:<\(|\$\(|\`)\s*(?:curl|wget)`],
  ["remote_code", "high", String.raw`\b(?:iex|Invoke-Expression)\b|DownloadString|${NAME}(?:bash|sh)\s+-c\s+["']?\$\((?:curl|wget)`],
  ["decoded_code", "high", String.raw`(?:base64\s+(?:-d|-D|--decode)|base32\s+-d|xxd\s+-r|openssl\s+(?:enc|base64)\s.*-d|gunzip|rev|tr\s+\S+\s+\S+)[^;\n]*\|\s*(?:sudo\s+)?${RUNS}`],
  ["decoded_code", "high", String.raw`-(?:EncodedCommand|enc)\b|eval\s*["']?\$\([^)]*base64|exec\(\s*(?:base64|bytes\.fromhex|__import__|zlib|codecs)`],
  ["root", "high", String.raw`${NAME}(?:sudo|doas|pkexec|runas|gsudo)\s|${NAME}su(?:\s+-|\s+root|\s*$|\s+-c)`],
  ["rights", "high", String.raw`${NAME}chmod\s+(?:-\S+\s+){0,8}(?:0?[0-7]?777|[augo]*\+[rwx]*s|a\+\w*w|o\+\w*w|[42]\d{3}\b)`],
  ["rights", "look", String.raw`${NAME}(?:chmod|chown|chgrp|setfacl|icacls|takeown|chattr|setcap)\s`],
  ["disk", "high", String.raw`${NAME}dd\b[^;|]*\bof=|${NAME}(?:mkfs(?:\.\w+)?|fdisk|parted|sgdisk|wipefs|blkdiscard|hdparm|diskpart|cryptsetup|mkswap)\b`],
  ["disk", "high", String.raw`>\s*/dev/(?:sd|nvme|hd|vd|mmcblk|disk|mem|kmem)|/dev/(?:sd[a-z]|nvme\d)`],
  ["fork_bomb", "high", String.raw`([\w:.]+)\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&|while\s+(?:true|:)\s*;?\s*do[^;]*&\s*(?:;|done)|%0\s*\|\s*%0`],
  ["force_push", "high", String.raw`\bgit\b[^;&|]*\bpush\b[^;&|]*(?:\s-[a-z]*f\b|--force|--mirror|--delete|\s:\w|\s\+\w)`],
  ["lost_work", "high", String.raw`\bgit\b[^;&|]*\b(?:reset\s+(?:\S+\s+){0,6}--hard|clean\s+-\w*[fdx]|checkout\s+(?:--|\.)|restore\s|branch\s+-D|stash\s+(?:drop|clear)|filter-branch|filter-repo|reflog\s+(?:expire|delete)|update-ref\s+-d|gc\s+--prune)`],
  ["reverse_shell", "high", String.raw`/dev/(?:tcp|udp)/|\b(?:nc|ncat|netcat)\b[^;|]*\s-\w*[ec]\b|${SHELL}\s+-i\s*(?:>&|0?<)|socat\b.*\bexec:|mkfifo\b.*\b(?:nc|ncat|telnet|openssl)\b|socket\.socket.*(?:dup2|pty)`],
  ["secrets", "high", SECRET_FILES],
  ["secrets", "look", String.raw`${NAME}(?:printenv|env)\s*(?:$|[|>;&])|${NAME}(?:set|export\s+-p|declare\s+-x)\s*(?:$|[|>])|\$\{?\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIAL)\w*|os\.environ|process\.env|169\.254\.169\.254|security\s+find-|${NAME}(?:pass|op|gopass|vault)\s+(?:show|read|get|kv)`],
  ["upload", "high", String.raw`\bcurl\b[^;|]*(?:\s-(?:d|F|T)\b|\s-[a-z]*[dFT]\s*@|--data|--form|--upload-file|\s-X\s*(?:POST|PUT))|\bwget\b[^;|]*--post|${NAME}(?:scp|sftp|rclone|rsync)\b[^;|]*\s\S+:|\b(?:nc|ncat|netcat)\b[^;|]*<|aws\s+s3\s+(?:cp|sync|mv)|gh\s+gist|transfer\.sh`, ""],
  ["network", "look", String.raw`${NAME}(?:curl|wget|nc|ncat|netcat|ssh|scp|sftp|ftp|telnet|rsync|socat|aria2c|nmap|dig|nslookup|host|Invoke-WebRequest|iwr|http)\s|https?://|git\s+(?:clone|fetch|pull|push)\b`],
  ["system", "high", String.raw`(?:>{1,2}|${NAME}(?:tee|cp|mv|ln|install|sed\s+-i\S*|touch|mkdir|vi|vim|nano)\b[^;|&]*)\s*["']?/(?:etc|boot|usr|bin|sbin|lib|lib64|sys|proc|dev(?!/null\b|/std)|var/(?!tmp)|root|System|Library)\b`],
  ["system", "high", String.raw`${NAME}(?:sysctl\s+-w|insmod|rmmod|modprobe|reg\s+(?:add|delete)|bcdedit|vssadmin|update-grub|kextload|nvram)\b|System32`],
  ["persistence", "high", String.raw`${NAME}crontab\s+(?!-l)|systemctl\s+(?:\S+\s+){0,6}enable|launchctl\s+(?:load|bootstrap)|schtasks\s+/create|authorized_keys|\.(?:bash|zsh)rc\b|\.(?:bash_|z)?profile\b|/etc/(?:cron|rc\.local|profile|ld\.so\.preload)|\.git/hooks|${NAME}at\s+(?:now|\d)|\.config/autostart|CurrentVersion\\Run`],
  ["stop", "high", String.raw`${NAME}(?:shutdown|reboot|halt|poweroff|killall|pkill)\b|${NAME}init\s+[06]\b|${NAME}kill\s+(?:-\S+\s+){0,8}(?:-1|1)\b|systemctl\s+(?:stop|disable|mask|poweroff|reboot)|taskkill|Stop-Computer`],
  ["stop", "look", String.raw`${NAME}kill\s`],
  ["container", "high", String.raw`--privileged|docker\.sock|${NAME}(?:nsenter|chroot|unshare)\b|-v\s*/:|--pid[= ]host|--net(?:work)?[= ]host|--cap-add|docker\s+(?:system|volume|image)\s+prune`],
  ["infrastructure", "high", String.raw`\b(?:terraform|tofu|pulumi)\s+(?:\S+\s+){0,6}(?:destroy|apply|up)\b|kubectl\s+(?:\S+\s+){0,6}(?:delete|drain|apply|exec)\b|helm\s+(?:uninstall|delete|upgrade)|aws\s+\S+\s+(?:rm|rb|delete\S*|terminate\S*)|gcloud\b.*\bdelete\b|az\s+\S+.*\bdelete\b|gh\s+repo\s+delete|(?:npm|cargo|twine|gem|poetry|uv)\s+(?:publish|upload|push|yank)`],
  ["database", "high", String.raw`\bdrop\s+(?:table|database|schema|user|index)\b|\btruncate\s+(?:table\s+)?\w|\bdelete\s+from\s+[\w."]+\s*(?:;|"|'|$)|\bupdate\s+[\w."]+\s+set\s+(?!.*\bwhere\b)|FLUSH(?:ALL|DB)|${NAME}dropdb\b|dropDatabase|deleteMany\(\s*\{\s*\}`],
  ["firewall", "high", String.raw`${NAME}(?:iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|setenforce|netsh|apparmor_parser|aa-\w+)\s|Set-MpPreference|spctl\s+--master-disable|csrutil`],
  ["accounts", "high", String.raw`${NAME}(?:useradd|adduser|userdel|usermod|passwd|chpasswd|groupadd|visudo|dscl|gpasswd)\b|net\s+(?:user|localgroup)\s`],
  ["traces", "high", String.raw`history\s+-c|HISTFILE|HISTSIZE=0|\.(?:bash|zsh)_history|(?:>|rm\s.*)\s*/var/log|journalctl\s+--vacuum|wevtutil\s+cl|Clear-EventLog`],
  ["install", "look", String.raw`\b(?:pip[\d.]*|pipx|uv(?:\s+pip)?|npm|pnpm|yarn|apt(?:-get)?|dnf|yum|apk|pacman|brew|gem|cargo|go|snap|choco|winget|conda|poetry)\s+(?:\S+\s+){0,6}?(?:install|add|i|get|-S\w*)\b|${NAME}(?:npx|uvx|bunx|pnpm\s+dlx)\s|make\s+install|setup\.py`],
  ["disguise", "high", String.raw`\$\{?IFS\b|\$'[^']*\\(?:x[0-9a-f]|[0-7]{2}|u[0-9a-f])|printf\s+["'][^"']*\\x|\becho\s+-\w*e\w*\s+["'][^"']*\\(?:x|0)|\$\{[^}]*[:#%/@][^}]*\}\s*\$\{|\beval\b|\$\(\s*(?:echo|printf|rev|tr)\b[^)]*\)\s|\\[a-z]{1,2}\\[a-z]|[a-z]['"]{2}[a-z]`],
  ["overwrite", "look", String.raw`(?<![0-9&>=-])>(?![>&(=])\s*(?!/dev/(?:null|stdout|stderr))[^\s&]|${NAME}(?:mv|tee|cp)\s|sed\s+(?:-\w+\s+)*-\w*i|${NAME}(?:patch|install)\s`],
  ["outside", "look", String.raw`(?:^|[\s=>"':])\.\./|(?:^|[\s=>"'])~[/\w]?|\$\{?HOME\b|(?:^|[\s=>"'])/(?!dev/null|dev/std|tmp\b)[A-Za-z]`],
  ["background", "look", String.raw`${NAME}(?:nohup|setsid|disown|screen\s+-d|tmux\s+new)\b|[^&>|]&\s*(?:$|[^&>\d])`],
  ["nested", "look", String.raw`\$\((?!\()|\`[^\`]+\`|<\(|\bxargs\b|${SHELL}\s+-\w*c\b|(?:python[\d.]*|perl|ruby|node|php)\s+-(?:c|e|r)\b`],
]);

/** Risks of a command line: each kind once, the most important first. */
export function commandRisks(command: string): Risk[] {
  // As the shell reads it: continued lines are joined, and quotes within a word are removed.
  const joined = command.replace(/\\\r?\n/g, " ");
  const bare = joined.replace(/(\w)(?:''|""|\\)(?=\w)/g, "$1");
  const found = new Map<RiskCode, Risk>();
  for (const text of bare === joined ? windows(joined) : [...windows(joined), ...windows(bare)])
    for (const [code, level, pattern] of COMMANDS) {
      if (found.has(code) && (level !== "high" || found.get(code)!.level === "high")) continue;
      const hit = pattern.exec(text);
      if (hit) found.set(code, { code, level, found: excerpt(hit[0]) });
    }
  if (found.has("delete_all")) found.delete("delete");
  if (found.has("upload") || found.has("remote_code")) found.delete("network");
  if (found.has("system")) found.delete("outside");
  const lines = joined.trim().split("\n").filter((line) => line.trim()).length;
  if (lines > 1) found.set("lines", { code: "lines", level: "look", found: String(lines) });
  return sorted([...found.values()]);
}

const WINDOW = 600; // characters per window: bounds the running time of every pattern
const WINDOW_OVERLAP = 150; // of them shared with the next window

function windows(text: string): string[] {
  const found: string[] = [];
  for (let at = 0; at === 0 || at + WINDOW_OVERLAP < text.length; at += WINDOW - WINDOW_OVERLAP)
    found.push(text.slice(at, at + WINDOW));
  return found;
}

const PATHS: readonly Row[] = rows([
  ["path_up", "high", String.raw`(?:^|[\\/])\.\.(?:[\\/]|$)|%2e%2e|\.\.%(?:2f|5c)|%252e|\.\.;`],
  ["path_odd", "high", String.raw`\0|%00|[^\\/.\s](?:\.|\s)+$|^\\\\|::\$DATA|^file:|^-`],
  ["path_secret", "high", SECRET_FILES],
  ["path_runs", "high", String.raw`\.git/(?:hooks|config)|\.github/workflows|\.gitlab-ci|\.(?:ba|z)shrc|\.(?:bash_|z)?profile|crontab|/cron\.|authorized_keys|/etc/|\.vscode/(?:tasks|settings)|sitecustomize|\.pth$|conftest\.py|autostart|System32`],
  ["path_absolute", "look", String.raw`^/|^[a-z]:[\\/]`],
  ["path_home", "look", String.raw`^~|^\$\{?HOME`],
]);

/** Risks of a file path. */
export function pathRisks(path: string): Risk[] {
  return byTable(PATHS, path);
}

const URLS: readonly Row[] = rows([
  ["url_scheme", "high", String.raw`^\s*(?:javascript|data|file|vbscript|gopher|ldap|dict|ftp|jar|blob):`],
  ["url_inside", "high", String.raw`^[a-z]+://(?:[^/@]*@)?(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|0\.0\.0\.0|0(?:[:/]|$)|\[(?:::1|::|f[cde]|::ffff:)|metadata\.google|[^/:?#]*\.(?:local|internal|lan|home|corp)(?:[:/]|$)|\d{6,}(?:[:/]|$)|0x[0-9a-f]+(?:[.:/]|$))`],
  ["url_login", "high", String.raw`^[a-z]+://[^/?#]*@`],
  ["url_disguise", "high", String.raw`^[a-z]+://[^/?#]*(?:xn--|[^\x00-\x7f]|%[0-9a-f]{2})|^[a-z]+:\\|^[a-z]+:/?[^/]`],
  ["url_plain", "look", String.raw`^http://`],
]);
const MAX_QUERY = 300; // characters of a query; a longer one could exfiltrate data

/** Risks of a URL. */
export function urlRisks(url: string): Risk[] {
  const found = byTable(URLS, url);
  const query = /[?#].*$/s.exec(url)?.[0] ?? "";
  return query.length > MAX_QUERY ? [...found, { code: "url_long", level: "look", found: excerpt(query) }] : found;
}

function byTable(table: readonly Row[], text: string): Risk[] {
  const found = new Map<RiskCode, Risk>();
  for (const [code, level, pattern] of table) {
    const hit = pattern.exec(text);
    if (hit && !found.has(code)) found.set(code, { code, level, found: excerpt(hit[0] || text) });
  }
  return sorted([...found.values()]);
}

export interface Hint extends Risk {
  readonly where: string; // the argument
}

const COMMAND_NAME = /^(?:command|commands|cmd|shell|script|bash|code|line|argv|args|statement|sql|query)$/i;
const SHELL_TOOL = /(?:^|[_.-])(?:shell|bash|sh|exec|execute|terminal|command|cmd|powershell|run|sql)(?:$|[_.-])/i;
const PATH_NAME = /(?:path|file|filename|dir|directory|folder|dest|destination|source|target|root|cwd)s?$/i;
const URL_NAME = /(?:url|uri|href|link|endpoint|address|webhook)s?$/i;
const MOST = 20_000; // characters of a value that are checked

/** Risk hints for the arguments of a call, by their names and values. */
export function hintsFor(tool: string, value: unknown, where = ""): Hint[] {
  if (typeof value === "string") return textHints(tool, value.slice(0, MOST), where);
  if (Array.isArray(value)) {
    const last = where.split(".").at(-1) ?? "";
    if (value.length && value.every((item) => typeof item === "string") && COMMAND_NAME.test(last))
      return textHints(tool, (value as string[]).join(" ").slice(0, MOST), where);
    return value.slice(0, 200).flatMap((item, index) => hintsFor(tool, item, `${where}.${index}`));
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).slice(0, 200).flatMap(([name, item]) => hintsFor(tool, item, where ? `${where}.${name}` : name));
}

function textHints(tool: string, text: string, where: string): Hint[] {
  const name = where.replace(/(?:\.\d+)+$/, "").split(".").at(-1) ?? "";
  const put = (risks: Risk[]) => risks.map((risk) => ({ ...risk, where }));
  if (URL_NAME.test(name) || /^\s*[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(text)) return put(urlRisks(text.trim()));
  if (PATH_NAME.test(name)) return put(pathRisks(text));
  if (COMMAND_NAME.test(name) || SHELL_TOOL.test(tool)) return put(commandRisks(text));
  return [];
}

const sorted = (risks: Risk[]) => [...risks.filter((risk) => risk.level === "high"), ...risks.filter((risk) => risk.level !== "high")];

function excerpt(text: string): string {
  const trimmed = text.trim().replace(/^[;&|({`"']\s*/, "").replace(/\s+/g, " ");
  return trimmed.length > 60 ? `${trimmed.slice(0, 59)}…` : trimmed;
}
