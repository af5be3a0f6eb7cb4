"""Report: what each model did, with date, version and cost, as Markdown and as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.version import __version__
from tools.live_vendors.redaction import redact
from tools.live_vendors.story import Chapter


class ModelReport(Struct, frozen=True):
    """A model, and its chapters; `refused` says why it was not asked at all."""

    model: str
    address: str  # "": the vendor's own
    chapters: Sequence[Chapter] = ()
    refused: str = ""


class LiveReport(Struct, frozen=True):
    """A run."""

    at: datetime.datetime
    cap: float
    spent: float
    requests: int
    models: Sequence[ModelReport]
    version: str = __version__

    @property
    def has_failed(self) -> bool:
        """Whether a chapter failed."""
        return any(chapter.state == "failed" for model in self.models for chapter in model.chapters)

    def as_markdown(self) -> str:
        """The report for people."""
        lines = [
            f"# Live vendors, {self.at:%Y-%m-%d %H:%M} UTC",
            "",
            f"Everturn {self.version}. {self.requests} requests, ${self.spent:.4f} of at most ${self.cap:.2f}, by known prices; "
            "a request without a reported cost counts as the most that it could cost.",
        ]
        for model in self.models:
            lines += ["", f"## {model.model}", ""]
            if model.address:
                lines += [f"At {model.address}, and not at the vendor's own address.", ""]
            if model.refused:
                lines.append(f"Not asked: {model.refused}")
                continue
            lines += ["| chapter | result | | seconds | dollars |", "|---|---|---|--:|--:|"]
            for each in model.chapters:
                note = each.note.replace("|", "\\|").replace("\n", " ")[:300]
                lines.append(f"| {each.name} | {each.state} | {note} | {each.seconds:.1f} | {each.dollars:.4f} |")
        return "\n".join(lines) + "\n"

    def write(self, folder: Path, secrets: Sequence[str]) -> Path:
        """Write both files without secrets, and return that for people."""
        name = f"live-{self.at:%Y-%m-%d-%H%M%S}"
        folder.mkdir(parents=True, exist_ok=True)
        data = msgspec.json.format(msgspec.json.encode(self)).decode()
        (folder / f"{name}.json").write_text(redact(data, secrets) + "\n", "utf-8")
        path = folder / f"{name}.md"
        path.write_text(redact(self.as_markdown(), secrets), "utf-8")
        return path
