"""Command model: text to speech or transcription by a local program, which reads its input on stdin and writes to stdout.

The program gets the text, or the recording as a WAV file, and nothing else: no arguments made of it, which other users of
the machine could read, and none of the server's environment, which has keys. Its stderr is not read.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.modality import Modality
from everturn.core.parts import FilePart
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.media.job import message_text
from everturn.models.media.speech import read_speech

OUTPUT_LIMIT: Final = 16 * 2**20  # bytes that the program writes
INHERITED: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "USER", "SYSTEMROOT")
WAV_HEADER: Final = 44  # bytes of a header with one `fmt ` and one `data` chunk


class CommandModel:
    """A local program as a model of the type `audio-tts` or `audio-stt`."""

    def __init__(self, command: Sequence[str], modality: Modality, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._environ = {name: environ[name] for name in INHERITED if name in environ}
        program = shutil.which(command[0], path=self._environ.get("PATH"))
        if program is None:
            raise ConfigError(f"the program {command[0]!r} was not found; install it, or write its path")
        self._command = (program, *command[1:])
        self.modality: Modality = modality
        self.name = f"command:{os.path.basename(program)}"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Run the program, and yield its output once it has ended.

        Raises:
            ModelError: it failed, wrote too much, or wrote nothing that can be used.
        """
        if self.modality == "audio-tts":
            output = complete_wav(await self._run(message_text(request).encode("utf-8", "replace")))
            yield read_speech(output, "")
        else:
            part = next(part for part in request.messages[-1].parts if isinstance(part, FilePart))
            text = (await self._run(request.files[part.blob])).decode("utf-8", "replace")
            yield [TextChunk(text.strip())]
        yield [FinishChunk("stop")]

    async def _run(self, data: bytes) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environ,
                cwd=os.sep,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelError(f"{self.name} cannot be started: {error.strerror}", kind="server") from None
        sending = asyncio.create_task(_send(process, data))
        try:
            output = await self._read(process)
            status = await process.wait()
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            _kill_group(process)
            await process.wait()
        if status:
            raise ModelError(f"{self.name} ended with status {status}", kind="response")
        return output

    async def _read(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None  # it is a pipe
        output = bytearray()
        while piece := await process.stdout.read(2**16):
            output += piece
            if len(output) > OUTPUT_LIMIT:
                raise ModelError(f"{self.name} wrote more than {OUTPUT_LIMIT:,} bytes", kind="limit")
        return bytes(output)


async def _send(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None  # it is a pipe
    try:
        with suppress(ConnectionError):  # it does not read all of it
            process.stdin.write(data)
            await process.stdin.drain()
    finally:
        process.stdin.close()


def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill what the program has started, too."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def complete_wav(data: bytes) -> bytes:
    """A WAV file with the sizes in its header. A program that writes to a pipe cannot know them, and writes placeholders."""
    if data[:4] != b"RIFF" or data[8:16] != b"WAVEfmt " or data[36:40] != b"data":
        return data
    size = len(data) - WAV_HEADER
    if int.from_bytes(data[40:44], "little") <= size:
        return data
    return data[:4] + (size + 36).to_bytes(4, "little") + data[8:40] + size.to_bytes(4, "little") + data[WAV_HEADER:]
