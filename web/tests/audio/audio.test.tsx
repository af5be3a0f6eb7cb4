// @vitest-environment happy-dom
// Dictation puts text into the box and sends nothing; reading aloud uses the server, or the browser where the server has no speech.
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client, me, toasts } from "../../src/app/app";
import { language } from "../../src/app/texts";
import { DictateButton } from "../../src/audio/dictateButton";
import { ReadAloud } from "../../src/audio/readAloud";
import { encodeWav, RATE } from "../../src/audio/wavRecorder";
import { forgetAudio } from "../../src/audio/server";
import { splitText, spokenText } from "../../src/audio/spokenText";

const ALL = { transcription: true, speech: true, max_seconds: 60, max_characters: 100 };
let root: HTMLElement;

beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  me.set({ user: "ada", role: "member", csrf: "" } as never);
});
afterEach(() => {
  render(null, root);
  root.remove();
  forgetAudio();
  language.set("en");
  toasts.set([]);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const draw = async (node: preact.JSX.Element) => {
  await act(async () => render(node, root));
  await act(async () => {});
};
const button = (name: string) => [...root.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === name);
const press = async (name: string) => {
  await vi.waitFor(() => expect(button(name)).toBeDefined());
  await act(async () => button(name)!.click());
};
const serverHas = (audio: Partial<typeof ALL>) => vi.spyOn(client, "get").mockResolvedValue({ ...ALL, ...audio });

/** A microphone, and a decoder that hears half a second of one tone in two channels. */
function microphone() {
  const stopped = vi.fn();
  const getUserMedia = vi.fn(async () => ({ getTracks: () => [{ stop: stopped }] }));
  vi.stubGlobal("navigator", { ...navigator, mediaDevices: { getUserMedia } });
  vi.stubGlobal("MediaRecorder", class {
    state = "inactive";
    mimeType = "audio/webm";
    ondataavailable = (_: { data: Blob }) => {};
    onstop = () => {};
    start() { this.state = "recording"; }
    stop() {
      this.state = "inactive";
      this.ondataavailable({ data: new Blob(["webm"]) });
      this.onstop();
    }
  });
  vi.stubGlobal("OfflineAudioContext", class {
    decodeAudioData = async () => ({ length: RATE / 2, numberOfChannels: 2, getChannelData: (channel: number) => new Float32Array(RATE / 2).fill(channel ? 0.5 : 0) });
  });
  return { stopped, getUserMedia };
}

it("is not there unless the server transcribes and the browser records", async () => {
  serverHas({ transcription: false });
  microphone();
  await draw(<DictateButton onText={() => {}} />);
  expect(root.textContent + root.innerHTML).toBe("");
  render(null, root);
  forgetAudio();
  serverHas({});
  vi.stubGlobal("MediaRecorder", undefined);
  await draw(<DictateButton onText={() => {}} />);
  expect(root.querySelector("button")).toBeNull();
});

it("sends a recording as WAV, hands on its text, and lets go of the microphone", async () => {
  serverHas({});
  const { stopped } = microphone();
  const transcribe = vi.spyOn(client, "transcribe").mockResolvedValue({ text: "hello there" });
  const send = vi.spyOn(client, "send");
  const texts: string[] = [];
  await draw(<DictateButton session="s" onText={(text) => texts.push(text)} />);
  await press("Dictate");
  await vi.waitFor(() => expect(root.querySelector('[role="timer"]')).not.toBeNull());
  expect(root.querySelector('[role="timer"]')!.textContent).toBe("0:00");
  await press("Stop recording and insert the text");
  await vi.waitFor(() => expect(texts).toEqual(["hello there"]));
  expect(stopped).toHaveBeenCalled();
  const [recording, session] = transcribe.mock.calls[0]!;
  const wav = new DataView(await recording.arrayBuffer());
  expect([session, recording.type, wav.byteLength, wav.getUint32(24, true), wav.getUint16(22, true)]).toEqual(["s", "audio/wav", 44 + RATE, RATE, 1]);
  expect(wav.getInt16(44, true)).toBe(Math.trunc(0.25 * 0x7fff)); // the mean of the channels
  expect(send).not.toHaveBeenCalled();
  expect(button("Dictate")).toBeDefined();
});

it("discards a recording without a request, and when the composer goes away", async () => {
  serverHas({});
  const { stopped } = microphone();
  const transcribe = vi.spyOn(client, "transcribe");
  await draw(<DictateButton onText={() => {}} />);
  await press("Dictate");
  await press("Discard the recording");
  expect(stopped).toHaveBeenCalledTimes(1);
  await press("Dictate");
  await vi.waitFor(() => expect(button("Discard the recording")).toBeDefined());
  await act(async () => render(null, root));
  expect(stopped).toHaveBeenCalledTimes(2);
  expect(transcribe).not.toHaveBeenCalled();
});

it("says why nothing came of it", async () => {
  serverHas({});
  const { getUserMedia } = microphone();
  await draw(<DictateButton onText={() => expect.unreachable()} />);
  getUserMedia.mockRejectedValueOnce(new DOMException("no", "NotAllowedError"));
  await press("Dictate");
  await vi.waitFor(() => expect(toasts.value).toHaveLength(1));
  expect(toasts.value.at(-1)!.text).toContain("did not allow the microphone");
  vi.spyOn(client, "transcribe").mockResolvedValueOnce({ text: "" });
  await press("Dictate");
  await press("Stop recording and insert the text");
  await vi.waitFor(() => expect(toasts.value.at(-1)!.text).toContain("No words"));
});

const message = { id: "m", role: "assistant", parts: [{ type: "text", text: "# Title\n\nA **bold** word. And [a link](https://example.com)." }] } as never;

/** Players end when they are told to. */
function players() {
  const made: { onended: () => void; pause: () => void }[] = [];
  vi.stubGlobal("Audio", class {
    error = null;
    onended = () => {};
    onerror = () => {};
    pause = vi.fn();
    constructor() { made.push(this); }
    play = async () => {};
  });
  vi.spyOn(URL, "createObjectURL").mockReturnValue("blob:x");
  vi.spyOn(URL, "revokeObjectURL").mockReturnValue();
  return made;
}

it("reads with the speech of the server, without Markdown, and stops", async () => {
  serverHas({ max_characters: 24 });
  const made = players();
  const speak = vi.spyOn(client, "speak").mockResolvedValue(new Blob(["wav"]));
  await draw(<ReadAloud session="s" message={message} />);
  await press("Read aloud");
  await vi.waitFor(() => expect(made).toHaveLength(1));
  expect(speak.mock.calls).toEqual([["s", "Title\nA bold word."], ["s", "And a link."]]); // the next one is fetched meanwhile
  await act(async () => made[0]!.onended());
  await vi.waitFor(() => expect(made).toHaveLength(2));
  await press("Stop reading");
  await vi.waitFor(() => expect(made[1]!.pause).toHaveBeenCalled());
  expect(button("Read aloud")).toBeDefined();
});

it("reads with the browser where the server has no speech, and is not there if neither has any", async () => {
  serverHas({ speech: false });
  await draw(<ReadAloud session="s" message={message} />);
  expect(root.querySelector("button")).toBeNull();
  const spoken: { text: string; onend?: () => void }[] = [];
  vi.stubGlobal("SpeechSynthesisUtterance", class { constructor(readonly text: string) {} });
  vi.stubGlobal("speechSynthesis", { cancel: vi.fn(), speak: (one: { text: string }) => spoken.push(one) });
  const speak = vi.spyOn(client, "speak");
  await draw(<ReadAloud session="t" message={message} />);
  await press("Read aloud");
  expect(spoken.map(({ text }) => text)).toEqual(["Title\nA bold word. And a link."]);
  await act(async () => spoken[0]!.onend!());
  expect(button("Read aloud")).toBeDefined();
  expect(speak).not.toHaveBeenCalled();
});

it("reads no code, addresses or marks", () => {
  const markdown = "> Quote\n\n- one `x`\n- **two** &amp; [three](http://a.b)\n\n```js\nlet code = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | ![alt](http://c.d) |\n\n---\n\nEnd<br>here.";
  expect(spokenText(markdown)).toBe("Quote\none x\ntwo & three\na, b\n1, alt\nEndhere.");
});

it("splits at the ends of sentences, and anywhere if there is none", () => {
  expect(splitText("One two. Three four! Five", 12)).toEqual(["One two.", "Three four!", "Five"]);
  expect(splitText("你好。再见。谢谢", 6)).toEqual(["你好。再见。", "谢谢"]);
  expect(splitText("abcdefgh", 3)).toEqual(["abc", "def", "gh"]);
  expect(splitText("a😀😀", 2)).toEqual(["a", "😀", "😀"]);
  expect(splitText(" \n", 5)).toEqual([]);
});

it("clips samples that are too loud", async () => {
  const view = new DataView(await encodeWav(new Float32Array([2, -2])).arrayBuffer());
  expect([view.getInt16(44, true), view.getInt16(46, true)]).toEqual([0x7fff, -0x7fff]);
});
