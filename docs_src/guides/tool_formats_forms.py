import json

from everturn.models import RequestCall
from everturn.models.prompted import TOOL_FORMATS


def main() -> None:
    arguments = json.dumps({"at": 7, "text": "if x:\n  y()"})
    call = RequestCall("call-1", "edit", arguments)
    for name, tool_format in TOOL_FORMATS.items():
        print(f"--- {name}")
        print(tool_format.write([call]))


if __name__ == "__main__":
    main()
