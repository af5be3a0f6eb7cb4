"""A long conversation with the real local model, through the terminal, unattended:

    nice -n 5 python -m tools.long_conversation.campaign [--messages 60] [--kill 2] [--write]

It starts llama.cpp with SmolLM2-135M and a context window of 2,048 tokens (`scripts/local-model`), and `everturn chat` in a
pseudo-terminal with the settings that everyone has, except the address and the window of the model. It types each message
when the one before has been answered. In the middle of a summary, when a part of it has already arrived, it kills the
terminal with `kill -9`, starts it again, opens the session, and goes on. At the end it asks for each of eight facts that
were said among the first messages.

For each fact it looks at the bytes of the request (a proxy keeps them), at the answer, and at the same question in a request
without a summary: the newest messages that fit. `--write` writes the table that docs and CI read. It exits with 1 if a turn
failed or a message was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any

import aiohttp

from everturn.core.context.context_size import SUMMARIZE_AT, ContextLimits
from everturn.core.events import CompactionFailed, CompactionStarted, TurnCompleted, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import SummaryPart, TextPart
from tools.environment import ROOT
from tools.long_conversation.assistant import LOOK, Assistant, StoredLog
from tools.long_conversation.conversation import FACTS, Fact, messages
from tools.long_conversation.recorder import Exchange, Recorder, recording
from tools.long_conversation.report import PAGE, FactReport, Report, render
from tools.servers.process import free_port

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-local-model"
WINDOW = 2_048
PATIENCE = 3600.0  # seconds for an answer; a loaded machine needs many
MARKUP = 6  # tokens around a message
MIDDLE = 400  # bytes of an answer after which a summary has begun


@contextlib.asynccontextmanager
async def local_model() -> AsyncGenerator[int]:
    """The model, on a port of its own."""
    python = HOME / "bin/python"
    if not python.exists():
        sys.exit("there is no local model: run scripts/local-model")
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        python, ROOT / "tests/live/serve_model.py", str(port), "1", stdout=-1, stderr=-3
    )
    try:
        assert server.stdout is not None
        await server.stdout.readline()
        yield port
    finally:
        server.kill()
        await server.wait()


def configure(home: Path, url: str, window: int) -> None:
    """Name the model, its address and its window: nothing else differs from the defaults."""
    folder = home / "config" / "everturn"
    folder.mkdir(parents=True)
    (folder / "everturn.toml").write_text(
        f'[models.local]\nmodel = "llamacpp:smollm2"\nbase_url = "{url}"\nwindow = {window}\n\n'
        '[agents.assistant]\nmodel = "local"\n'
    )


class Campaign:
    """One conversation."""

    def __init__(self, home: Path, recorder: Recorder, kill_at: int) -> None:
        self.recorder, self._kill_at = recorder, kill_at
        self.assistant = Assistant(home)
        self.log = StoredLog(home / "data" / "everturn" / "everturn.db")
        self.kills, self.killed_after = 0, 0
        recorder.on_piece = self._maybe_kill

    def _maybe_kill(self, exchange: Exchange) -> None:
        """Kill the terminal while it reads the summary with this number."""
        summaries = [known for known in self.recorder.exchanges if known.is_summary]
        if self.kills or not exchange.is_summary or len(summaries) < self._kill_at or exchange.status != 200:
            return
        _, _, body = exchange.answer.partition(b"\r\n\r\n")
        if len(body) >= MIDDLE and b"[DONE]" not in body:
            self.kills, self.killed_after = 1, len(body)
            self.assistant.kill()

    async def start(self) -> None:
        """Start the terminal, for the first time or again; then open the session that is there."""
        self.assistant.start()
        await self.assistant.wait_for("Ask anything")
        self.log.read()
        if self.log.sessions:
            self.assistant.type("\x0f")  # Ctrl+O: all sessions
            await self.assistant.wait_for("Ravensholm")
            await asyncio.sleep(1)
            self.assistant.type("\r")
            await self.assistant.wait_for(r"Message|Write")

    async def say(self, text: str, number: int) -> None:
        """Type a message, and wait for the end of its turn; a terminal that was killed is started again."""
        self.assistant.type(text)
        await asyncio.sleep(0.3)
        self.assistant.type("\r")
        async with asyncio.timeout(PATIENCE):
            while len(self.log.ends) < number:
                await asyncio.sleep(LOOK)
                self.log.read()
                if not self.assistant.is_alive:
                    await self.start()


async def ask_without(port: int, request: Exchange, branch: list[tuple[str, str]]) -> tuple[str, str]:
    """The same question with the newest messages that fit and no summary: the request, and the answer."""
    limit = ContextLimits.of_window(WINDOW).limit
    sent: dict[str, Any] = json.loads(request.body)
    system = [message for message in sent["messages"] if message["role"] == "system"]
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", timeout=aiohttp.ClientTimeout(PATIENCE)) as client:

        async def post(path: str, body: dict[str, Any]) -> Any:
            async with client.post(path, json=body, raise_for_status=True) as answer:
                return await answer.json()

        async def count(text: str) -> int:
            return len((await post("/tokenize", {"content": text}))["tokens"]) + MARKUP

        room = limit - sum([await count(str(message["content"])) for message in system])
        newest: list[dict[str, str]] = []
        for role, text in reversed(branch):
            room -= await count(text)
            if room < 0:
                break
            newest.insert(0, {"role": role, "content": text})
        body = {**sent, "stream": False, "max_tokens": WINDOW - limit}
        body.pop("stream_options", None)
        while newest:
            while newest[0]["role"] != "user":
                newest.pop(0)
            try:
                answer = await post("/v1/chat/completions", {**body, "messages": [*system, *newest]})
            except aiohttp.ClientResponseError:  # its template needs more than we counted
                newest.pop(0)
                continue
            reply: str = answer["choices"][0]["message"]["content"]
            return "\n".join(message["content"] for message in newest), reply
    return "", ""


def branch_of(stored: list[Message]) -> list[tuple[str, str]]:
    """The messages of the person and of the assistant, as text."""
    dialogue: list[tuple[str, str]] = []
    for message in stored:
        text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        if message.role in ("user", "assistant") and text:
            dialogue.append((message.role, text))
    return dialogue


def has(text: str, fact: Fact) -> bool:
    """Whether a text contains the fact."""
    return " ".join(fact.key.casefold().split()) in " ".join(text.casefold().split())


async def run(
    count: int, kill_at: int, facts: tuple[Fact, ...] = FACTS, keep: Path | None = None, window: int = WINDOW
) -> Report:
    """Have the conversation, and ask for the facts; `keep` is a folder for the store and the requests.

    `window` is the context window that the terminal is told; the model reads 2,048 tokens.
    """
    begin = time.monotonic()
    report = Report(count, window, commit=describe_commit())
    with tempfile.TemporaryDirectory(prefix="everturn-long-") as folder:
        home = Path(folder)
        async with local_model() as port, recording(port) as recorder:
            configure(home, recorder.url, window)
            campaign = Campaign(home, recorder, kill_at)
            try:
                await campaign.start()
                for number, text in enumerate(messages(count), 1):
                    await campaign.say(text, number)
                    tell(campaign, number, begin)
                for number, fact in enumerate(facts, count + 1):
                    await campaign.say(fact.question, number)
                    report.facts.append(await judge(campaign, port, fact))
                    tell(campaign, number, begin)
            except (asyncio.CancelledError, TimeoutError) as error:
                ends = campaign.log.ends
                report.failures.append(f"the run ended after {len(ends)} turns: {type(error).__name__}")
            finally:
                campaign.assistant.kill()
                if keep is not None:
                    save(keep, home, recorder)
            conclude(report, campaign)
    report.seconds = time.monotonic() - begin
    return report


def save(folder: Path, home: Path, recorder: Recorder) -> None:
    """Save the store, the log of the terminal and all requests."""
    shutil.copytree(home, folder, dirs_exist_ok=True)
    rows = [
        {"request": known.body.decode(), "answer": known.answer.decode("utf-8", "replace"), "seconds": known.seconds}
        for known in recorder.exchanges
    ]
    (folder / "requests.json").write_text(json.dumps(rows), encoding="utf-8")


def tell(campaign: Campaign, number: int, begin: float) -> None:
    """One line about a message."""
    end = campaign.log.ends[-1]
    started = sum(isinstance(event, CompactionStarted) for event in campaign.log.events)
    excerpt = branch_of(campaign.log.messages())[-1][1][:70].replace("\n", " ")
    print(f"{time.monotonic() - begin:6.0f} s {number:3} {type(end).__name__} {started} {excerpt}", flush=True)


async def judge(campaign: Campaign, port: int, fact: Fact) -> FactReport:
    """What became of a fact whose question has just been answered."""
    request = [known for known in campaign.recorder.exchanges if known.messages and not known.is_summary][-1]
    branch = branch_of(campaign.log.messages())
    answer = branch.pop()[1] if branch[-1][0] == "assistant" else ""
    without, answer_without = await ask_without(port, request, branch)
    return FactReport(
        fact.kind,
        fact.key,
        in_request=has(request.text, fact),
        said=has(answer, fact),
        in_request_without=has(without, fact),
        said_without=has(answer_without, fact),
        answer=" ".join(answer.split())[:100],
    )


def conclude(report: Report, campaign: Campaign) -> None:
    """Count what the log and the requests show."""
    events, exchanges = campaign.log.events, campaign.recorder.exchanges
    report.turns_completed = sum(isinstance(end, TurnCompleted) for end in campaign.log.ends)
    campaign.log.read()
    inputs = sum(isinstance(event, TurnStarted) and event.input is not None for event in events)
    if inputs != report.messages + len(report.facts) and not report.failures:
        report.failures.append(f"{inputs} messages are in the log")
    if len(campaign.log.sessions) != 1:
        report.failures.append(f"{len(campaign.log.sessions)} sessions were begun")
    for end in campaign.log.ends:
        if not isinstance(end, TurnCompleted):
            problem = getattr(end, "problem", None)
            report.failures.append(type(end).__name__ + (f" ({problem.kind}): {problem.text}" if problem else ""))
    parts = [part for message in campaign.log.messages() for part in message.parts if isinstance(part, SummaryPart)]
    report.summaries = sum(bool(part.text) for part in parts)
    report.truncations = sum(not part.text for part in parts)
    report.useless = sum(bool(part.text) and part.after > part.before * SUMMARIZE_AT for part in parts)
    report.summary_problems = [event.problem.text for event in events if isinstance(event, CompactionFailed)]
    report.kills, report.killed_after = campaign.kills, campaign.killed_after
    report.requests = len(exchanges)
    report.summary_requests = sum(known.is_summary for known in exchanges)
    report.largest = max(known.prompt_tokens for known in exchanges)
    for exchange in exchanges:
        if exchange.status >= 400:
            report.refused[str(exchange.status)] = report.refused.get(str(exchange.status), 0) + 1


def describe_commit() -> str:
    """The commit that a run describes."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return git.stdout.strip()


async def _until_terminated(running: Coroutine[Any, Any, Report]) -> Report:
    """Run it; SIGTERM ends it and everything that it started, and the report says so."""
    task = asyncio.ensure_future(running)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description="A long conversation with the real local model, through the terminal.")
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--kill", type=int, default=2, help="the summary in the middle of which the terminal is killed")
    parser.add_argument("--keep", type=Path, help="a folder for the store and all requests")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/long_conversation.md")
    words = parser.parse_args()
    report = asyncio.run(_until_terminated(run(words.messages, words.kill, keep=words.keep)))
    text = render(report)
    print(text)
    if words.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0 if report.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
