"""A model for the notebook that needs no network: it finds a table in what was said, and has the browser add it up.

python offline.py            serves at http://127.0.0.1:8124/v1, where everturn.toml looks for it
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

from everturn.testing.provider import Call, Item, Provider, Say

ONE_TRICK = "I am offline, and know one trick: paste a table such as\n\n    what,sold\n    bread,12\n    soup,30\n"
ADD_UP = """
const [head, ...rows] = (await files.read("table.csv")).trim().split("\\n").map((line) => line.split(","));
const total = rows.reduce((sum, row) => sum + Number(row.at(-1)), 0);
await files.write("total.json", JSON.stringify({ total }));
console.log(`${rows.length} rows`);
return { total, of: head.at(-1) };
""".strip()


def keep(body: dict[str, Any]) -> list[Item]:
    """First the table goes into a file, in the browser."""
    content = json.dumps(body["messages"][-1]["content"])
    table = "\n".join(re.findall(r"(?:\\n|^\")?([\w ]+,[\w .]+)(?=\\n|\")", content))
    if table.count("\n") < 1:
        return [Say(ONE_TRICK)]
    return [Say("I keep the table first."), Call("write_file", json.dumps({"path": "table.csv", "content": table}))]


def compute(body: dict[str, Any]) -> list[Item]:
    """Then code reads it there, and adds it up."""
    return [Call("browser_js_eval", json.dumps({"code": ADD_UP}))]


def tell(body: dict[str, Any]) -> list[Item]:
    """And what it returned is told."""
    result = str(body["messages"][-1]["content"])
    found = re.search(r'"total":\s*([\d.]+),\s*"of":\s*"([^"]*)"', result)
    if found is None:
        return [Say(f"That did not work: {result}")]
    return [Say(f"The total of `{found[2].strip()}` is **{found[1]}**. It is kept in `total.json`.")]


async def serve(port: int) -> None:
    """Serve until Ctrl-C."""
    async with Provider(port) as provider:
        provider.script("notebook", [keep, compute, tell])
        print(f"the offline model is at {provider.url}/v1", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8124))
    except KeyboardInterrupt:
        pass
