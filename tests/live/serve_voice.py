"""Serve a voice and an ear over HTTP: `python serve_voice.py`, with the Python that `scripts/local-voice` made.

It speaks with eSpeak NG and listens with PocketSphinx and its plain English model. It says its port, and serves two of
OpenAI's endpoints until it is killed: `/v1/audio/speech` gives WAV, `/v1/audio/transcriptions` takes it.
"""

# pyright: basic, reportMissingImports=false
import array
import io
import json
import math
import re
import subprocess
import wave
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import mul

from pocketsphinx import Decoder

# Of the voices that were tried, the ear understands this one best, and at this speed.
VOICE, WORDS_PER_MINUTE = "en-us+f5", 145
RATE = 16_000  # what the ear was trained on
TAPS = 16  # samples on either side that a new one is made from


def speak(text: str, speed: float) -> bytes:
    """A text as WAV. The program writes a header before it knows the length, so it gets another one."""
    command = ["espeak-ng", "--stdin", "--stdout", "-v", VOICE, "-s", str(round(WORDS_PER_MINUTE * speed))]
    audio = subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(audio)) as sound:
        rate, samples = sound.getframerate(), sound.readframes(sound.getnframes())
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, rate, 0, "NONE", ""))
        sound.writeframes(samples)
    return out.getvalue()


def listen(data: bytes) -> str:
    """What a WAV says. Each has an ear of its own: one that has heard others would hear it differently."""
    with wave.open(io.BytesIO(data)) as sound:
        if (sound.getnchannels(), sound.getsampwidth()) != (1, 2):
            raise ValueError("this ear wants one channel of 16 bits")
        rate, samples = sound.getframerate(), array.array("h", sound.readframes(sound.getnframes()))
    ear = Decoder(samprate=RATE, loglevel="FATAL")
    ear.start_utt()
    ear.process_raw(resampled(samples, rate).tobytes(), full_utt=True)
    ear.end_utt()
    hypothesis = ear.hyp()
    return hypothesis.hypstr if hypothesis else ""


def resampled(samples: array.array, rate: int) -> array.array:
    """The same sound at the rate of the ear: each sample is a weighted sum of its old neighbours."""
    if rate == RATE:
        return samples
    weights, around = filters(rate), [0] * TAPS
    old, new = [*around, *samples, *around], array.array("h")
    for at in range(len(samples) * RATE // rate):
        first = at * rate // RATE + 1
        value = round(sum(map(mul, weights[at % len(weights)], old[first : first + 2 * TAPS])))
        new.append(max(-32768, min(32767, value)))
    return new


@cache
def filters(rate: int) -> list[list[float]]:
    """A windowed sinc for each place that a new sample can have between two old ones."""
    cut = 0.95 * min(1.0, RATE / rate)
    rows: list[list[float]] = []
    for phase in range(RATE // math.gcd(rate, RATE)):
        offsets = [k - (phase * rate / RATE) % 1 for k in range(1 - TAPS, TAPS + 1)]
        rows.append([cut * sinc(cut * x) * (0.5 + 0.5 * math.cos(math.pi * x / (TAPS + 1))) for x in offsets])
    return rows


def sinc(x: float) -> float:
    return math.sin(math.pi * x) / (math.pi * x) if x else 1.0


def fields_of(content_type: str, body: bytes) -> dict[str, bytes]:
    """The fields of a form by their names."""
    boundary = re.search(r'boundary="?([^";]+)', content_type)
    if boundary is None:
        raise ValueError("Could not parse multipart form")
    found: dict[str, bytes] = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        name = re.search(rb'[; ]name="?([^";\r]+)', head)
        if name is not None:
            found[name[1].decode()] = data
    return found


class Desk(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            if self.path == "/v1/audio/speech":
                parameters = json.loads(body)
                if parameters.get("response_format") != "wav":
                    raise ValueError("this voice speaks wav: ask for it with response_format")
                self._answer(200, "audio/wav", speak(parameters["input"], float(parameters.get("speed") or 1)))
            elif self.path == "/v1/audio/transcriptions":
                form = fields_of(self.headers.get("content-type", ""), body)
                text = listen(form["file"])
                if form.get("response_format") == b"text":
                    self._answer(200, "text/plain; charset=utf-8", text.encode() + b"\n")
                else:
                    self._answer(200, "application/json", json.dumps({"text": text}).encode())
            else:
                self._refuse(404, f"Invalid URL (POST {self.path})")
        except KeyError as error:
            self._refuse(400, f"Missing required parameter: {error}.")
        except (EOFError, wave.Error):
            self._refuse(400, "Audio file might be corrupted or unsupported")
        except ValueError as error:
            self._refuse(400, str(error))

    def _refuse(self, status: int, message: str) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        self._answer(status, "application/json", json.dumps({"error": error}).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    print(server.server_port, flush=True)
    server.serve_forever()
