import { expect, test } from "vitest";
import { SseParser, type StreamMessage } from "../src/sse";
import { seededRandom, recorded } from "./recorded";

function parse(pieces: Iterable<string>): StreamMessage[] {
  const found: StreamMessage[] = [];
  const parser = new SseParser((message) => void found.push(message));
  for (const piece of pieces) parser.feed(piece);
  return found;
}

test("fields are read as the standard says", () => {
  const text = ": a comment\n\nid: 1\ndata: one\ndata:two\ndata\nevent: x\nretry: 5\nnonsense\n\ndata:  spaced \n\nid\ndata: {}\n\n";
  expect(parse([text])).toEqual([
    { id: "1", data: "one\ntwo\n" },
    { id: "1", data: " spaced " },
    { id: "", data: "{}" },
  ]);
});

test("what has no data is no message, and what breaks off in the middle is dropped", () => {
  expect(parse(["id: 1\n\ndata: a\n\nid: 2\ndata: b\n"])).toEqual([{ id: "1", data: "a" }]);
  expect(parse(["id: 3\0\ndata: a\n\n"])).toEqual([{ id: "", data: "a" }]);
});

test("lines end with a newline, a return or both, wherever the text is cut", () => {
  const random = seededRandom(1);
  for (let round = 0; round < 300; round++) {
    const sent = Array.from({ length: 5 }, (_, index) => ({ id: `${index}`, data: `é👋\u2028${"x".repeat(random() * 9)}\ny` }));
    const alone = sent.map(({ id, data }) => `id: ${id}\n: c\ndata: ${data.replace("\n", "\ndata: ")}\n\n`).join("");
    expect(parse(cut(alone, random))).toEqual(sent);
    expect(parse(cut(alone.replace(/\n/g, "\r"), random))).toEqual(sent);
    expect(parse(cut(alone.replace(/\n/g, "\r\n"), random))).toEqual(sent);
    const mixed = alone.replace(/(.)\n/g, (_, before: string) => before + ["\n", "\r\n", "\r:c\n"][Math.floor(random() * 3)]);
    expect(parse(cut(mixed, random))).toEqual(sent);
  }
});

test("a real stream, in whatever pieces its bytes come, is the same messages", () => {
  const random = seededRandom(2);
  const whole = parse([new TextDecoder().decode(recorded.bytes)]);
  expect(whole).toHaveLength(recorded.messages.length);
  for (let round = 0; round < 30; round++) {
    const decoder = new TextDecoder();
    const pieces: string[] = [];
    for (let position = 0; position < recorded.bytes.length; ) {
      const to = position + 1 + Math.floor(random() ** 4 * (round < 3 ? 3 : 4000));
      pieces.push(decoder.decode(recorded.bytes.subarray(position, to), { stream: true }));
      position = to;
    }
    expect(parse(pieces)).toEqual(whole);
  }
});

test("a message of megabytes in crumbs costs what it costs in a lump", () => {
  const data = "x".repeat(4_000_000);
  const text = `data: ${data}\n\n`;
  const crumbs: string[] = [];
  for (let position = 0; position < text.length; position += 16) crumbs.push(text.slice(position, position + 16));
  expect(parse(crumbs)[0]!.data.length).toBe(data.length); // a quarter of a million chunks: hours, if each scanned the whole text
});

function cut(text: string, random: () => number): string[] {
  const pieces: string[] = [];
  for (let position = 0; position < text.length; ) {
    const to = position + Math.floor(random() * 6);
    pieces.push(text.slice(position, to));
    position = to;
  }
  return pieces;
}
