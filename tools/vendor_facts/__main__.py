"""Vendor facts from the command line: `scripts/vendor-facts [--newest] [--list]`.

Without an option it checks the installed packages, and exits with 1 if something is neither mapped nor listed with a reason.
`--newest` installs the newest releases of the packages into a folder of their own, and prints what they add; that is news,
and no failure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.vendor_facts import inventory
from tools.vendor_facts.check import compare, compare_requests, compare_sources, news
from tools.vendor_facts.reviewed import REVIEWS


def read_newest() -> dict[str, Any]:
    """The inventory of the newest releases, from a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="vendor-facts-") as folder:
        uv = shutil.which("uv")
        install = (
            [uv, "pip", "install", "--quiet", "--python", sys.executable]
            if uv
            else [sys.executable, "-m", "pip", "install", "--quiet"]
        )
        subprocess.run([*install, "--upgrade", "--target", folder, *inventory.PACKAGES], check=True)
        # -S: the packages of this environment must not stand beside the newest ones.
        done = subprocess.run(
            [sys.executable, "-S", str(Path(inventory.__file__))],
            check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folder},
        )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Check, and print."""
    parser = argparse.ArgumentParser(prog="scripts/vendor-facts", description=__doc__)
    parser.add_argument(
        "--newest", action="store_true", help="also install the newest releases, and print what they add"
    )
    parser.add_argument("--list", action="store_true", help="print what is not mapped, with the reasons")
    options = parser.parse_args(arguments)
    found, errors = inventory.take_inventory()
    problems = [f"{package}: {error}" for package, error in errors.items()]
    problems += [*compare(found), *(compare_requests(found) if not errors else ()), *compare_sources()]
    if options.list:
        for name, review in REVIEWS.items():
            print(f"{name}: {len(review.mapped)} mapped")
            for left_out, why in sorted(review.left_out.items()):
                print(f"  {left_out}: {why}")
    names = sum(map(len, found.values()))
    print("packages: " + ", ".join(f"{name} {version}" for name, version in inventory.versions().items()))
    print(f"{names} names in {len(found)} lists; {len(problems)} neither mapped nor listed, or wrong")
    print(*problems, sep="\n", end="\n" if problems else "")
    if options.newest:
        newest = read_newest()
        print("newest: " + ", ".join(f"{name} {version}" for name, version in newest["versions"].items()))
        print(*(f"cannot be read: {package}: {error}" for package, error in newest["errors"].items()), sep="\n", end="")
        print(*([*news(found, newest["lists"])] or ["nothing is new"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
