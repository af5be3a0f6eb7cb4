"""`everturn serve` whose offline model speaks slowly, so that there is time to kill it while it does: run as a program."""

import os
import sys

from everturn import cli
from everturn.config import build
from everturn.models.offline import OfflineModel


def main() -> int:
    OfflineModel.__init__.__defaults__ = (float(os.environ["PACE"]),)  # seconds between two words
    if os.environ["TOOLS"] == "none":  # then a client may bring those that the model knows to call
        build.demo_tools = list
    return cli.main(["serve", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
