"""Regular expression worker: matches the texts on stdin, and writes the matching lines to stdout. A separate process,
so that it can be killed.

It is run as a file with only the standard library: Python's regular expression engine holds the GIL while it works, and
there are patterns for which it works for years.
"""

import json
import re
import sys

LONGEST_LINE = 100_000  # characters that are matched
LONGEST_SHOWN = 400


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows; the parent process kills this one in time
        return
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))


def main() -> None:
    """Answer the pattern, and then each text, with a line of JSON."""
    _limit()
    stdin, stdout = sys.stdin.buffer, sys.stdout
    request = json.loads(stdin.readline())
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        print(json.dumps({"error": str(error)[:200]}), file=stdout, flush=True)
        return
    print(json.dumps({}), file=stdout, flush=True)
    while head := stdin.readline():
        request = json.loads(head)
        text = stdin.read(request["size"]).decode("utf-8", "replace")
        hits: list[tuple[int, str]] = []
        for number, line in enumerate(text.split("\n"), 1):
            if len(hits) >= request["most"]:
                break
            if pattern.search(line[:LONGEST_LINE].rstrip("\r")):
                hits.append((number, line[:LONGEST_SHOWN]))
        print(json.dumps({"hits": hits}), file=stdout, flush=True)


if __name__ == "__main__":
    main()
