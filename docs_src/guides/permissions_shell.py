from everturn import Rule
from everturn.core.rules.policy import Policy
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

policy = Policy(
    [
        Rule("run", "allow", {"command": "git log *"}),
        Rule("run", "allow", {"command": "grep *"}),
        Rule("run", "deny", {"command": "rm *"}),
    ]
)
LINES = [
    "git log -3 | grep fix",
    "git log -3 > last.txt",
    "git log; /bin/rm -rf build",
    "sudo rm -rf build",
    "bash -c 'git log && rm x'",
    "git log $BRANCH",
    "$EDITOR notes.md",
    "git log $(cat name",
]


def main() -> None:
    for line in LINES:
        print(line)
        try:
            items = read_command(line)
        except UnreadableCommand as error:
            print("  deny:", str(error).partition(";")[0])
            continue
        for item in items:
            judged = policy.decide("run", [{"command": item}])
            print(f"  {judged.action}: {item.text}")


if __name__ == "__main__":
    main()
