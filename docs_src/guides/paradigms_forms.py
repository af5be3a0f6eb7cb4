import json

from everturn.core.requests import RequestCall
from everturn.models.prompted import PARADIGMS


def main() -> None:
    arguments = json.dumps({"at": 7, "text": "if x:\n  y()"})
    call = RequestCall("call-1", "edit", arguments)
    for name, paradigm in PARADIGMS.items():
        print(f"--- {name}")
        print(paradigm.write([call]))


if __name__ == "__main__":
    main()
