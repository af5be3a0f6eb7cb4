from pathlib import Path

from everturn import Rule
from everturn.replay import Change, Recording, what_if

MENU = Path(__file__).parent / "replay_menu.jsonl"


def main() -> None:
    recording = Recording.read(MENU)
    friday = Rule("menu", "ask", {"day": "f*"}, source="toml:3")
    for line in what_if(recording, Change(rules=[friday])).lines:
        print(line)
    print(what_if(recording, Change(system="Be brief.")).summary)


if __name__ == "__main__":
    main()
