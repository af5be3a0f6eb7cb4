"""Say how much a browser fetches before it shows anything, and refuse more than it may: `python scripts/web_size.py`."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent / "src" / "everturn" / "server" / "web"
TALKING: Final = "src/conversation/conversationView.tsx"
MOST: Final = 50 * 1024  # bytes, as they are sent, until somebody can write
MOST_TALKING: Final = 100 * 1024  # and until a conversation is drawn, compactions and earlier turns included


def fetched(root: Path, *beside: str) -> dict[str, int]:
    """What the first page needs, and what is loaded beside it, with the bytes of each when packed."""
    manifest: dict[str, dict[str, Any]] = json.loads((root / ".vite" / "manifest.json").read_text(encoding="utf-8"))
    wanted = [*(name for name, chunk in manifest.items() if chunk.get("isEntry")), *beside]
    files = {"index.html"}
    for name in wanted:
        chunk = manifest[name]
        files |= {chunk["file"], *chunk.get("css", ())}
        wanted += [one for one in chunk.get("imports", ()) if one not in wanted]
    return {name: len(gzip.compress((root / name).read_bytes(), 9)) for name in sorted(files)}


def main() -> int:
    """Count, tell, and judge."""
    sizes = fetched(ROOT)
    total = sum(sizes.values())
    talking = sum(fetched(ROOT, TALKING).values())
    whole = sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file())
    for name, size in sizes.items():
        print(f"  {size / 1024:6.1f} KB  {name}")
    print(f"  {total / 1024:6.1f} KB packed before anything is seen, of {MOST // 1024}")
    print(
        f"  {talking / 1024:6.1f} KB with a conversation open, of {MOST_TALKING // 1024}; {whole / 1024:.0f} KB in the wheel"
    )
    maps = [path.name for path in ROOT.rglob("*.map")]
    if total > MOST or talking > MOST_TALKING or maps:
        print(f"source maps do not ship: {maps}" if maps else "the page is too large", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
