"""A pattern and texts on stdin → the lines that match, on stdout. A program of its own, so that it can be killed.

Run as a file with nothing but the standard library: Python's matcher holds the interpreter while it works, and there
are patterns for which it works for years.
"""

import json
import re
import sys

LONGEST_LINE = 100_000  # characters that are looked at
LONGEST_SHOWN = 400


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows; whoever started this kills it in time
        return
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))


def main() -> None:
    """Answer the pattern, and then each text, with a line of JSON."""
    _limit()
    stdin, stdout = sys.stdin.buffer, sys.stdout
    asked = json.loads(stdin.readline())
    try:
        pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        print(json.dumps({"error": str(error)[:200]}), file=stdout, flush=True)
        return
    print(json.dumps({}), file=stdout, flush=True)
    while head := stdin.readline():
        asked = json.loads(head)
        text = stdin.read(asked["size"]).decode("utf-8", "replace")
        hits: list[tuple[int, str]] = []
        for number, line in enumerate(text.split("\n"), 1):
            if len(hits) >= asked["most"]:
                break
            if pattern.search(line[:LONGEST_LINE].rstrip("\r")):
                hits.append((number, line[:LONGEST_SHOWN]))
        print(json.dumps({"hits": hits}), file=stdout, flush=True)


if __name__ == "__main__":
    main()
