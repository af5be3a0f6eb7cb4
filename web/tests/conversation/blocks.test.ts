import { describe, expect, it } from "vitest";
import { Blocks } from "../../src/conversation/blocks";
import { lex } from "../../src/conversation/lexer";
import { CORPUS } from "./corpus";

function streamed(text: string, cuts: readonly number[]): Blocks {
  const blocks = new Blocks();
  for (const cut of [...cuts, text.length]) blocks.update(text.slice(0, cut));
  return blocks;
}

/** Seeded random numbers. */
function random(seed: number): () => number {
  return () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
}

const read = (blocks: Blocks) => blocks.all.flatMap((block) => lex(block.source, blocks.definitions));
const shape = (tokens: unknown) => JSON.parse(JSON.stringify(tokens, (key, value) => (key === "raw" ? undefined : value)));

describe.each(Object.entries(CORPUS))("%s", (_, text) => {
  const normal = text.replace(/\r\n?/g, "\n");

  it("comes to the same blocks wherever it is cut in two", () => {
    const whole = shape(lex(normal));
    for (let cut = 0; cut <= text.length; cut++) expect(shape(read(streamed(text, [cut])))).toEqual(whole);
  });

  it("comes to the same blocks one character at a time, and in random pieces", () => {
    const whole = shape(lex(normal));
    expect(shape(read(streamed(text, [...text].map((_, index) => index))))).toEqual(whole);
    const next = random(7);
    for (let round = 0; round < 40; round++) {
      const cuts = Array.from({ length: 1 + Math.floor(next() * 8) }, () => Math.floor(next() * text.length)).sort((a, b) => a - b);
      expect(shape(read(streamed(text, cuts)))).toEqual(whole);
    }
  });

  it("joined with every other text it still does", () => {
    for (const other of Object.values(CORPUS)) {
      const both = `${other}\n\n${text}`;
      const whole = shape(lex(both.replace(/\r\n?/g, "\n")));
      const next = random(both.length);
      for (let round = 0; round < 6; round++) {
        const cuts = Array.from({ length: 5 }, () => Math.floor(next() * both.length)).sort((a, b) => a - b);
        expect(shape(read(streamed(both, cuts)))).toEqual(whole);
      }
    }
  });
});

it("a finished block stays the same object", () => {
  const blocks = new Blocks();
  blocks.update("one\n\ntwo\n\nthr");
  const [first] = blocks.finished;
  blocks.update("one\n\ntwo\n\nthree\n\nfour\n");
  expect(blocks.finished[0]).toBe(first);
  expect(blocks.finished.length).toBeGreaterThan(1);
});

it("a text that is another one begins anew", () => {
  const blocks = new Blocks();
  blocks.update("one\n\ntwo\n\n");
  blocks.update("other");
  expect(blocks.all.map((block) => block.source)).toEqual(["other"]);
});

describe("what would take for ever is drawn as it was written", () => {
  it.each([
    ["quotes", ">".repeat(10_000) + " x"],
    ["quotes with spaces", "> ".repeat(10_000) + "x"],
    ["lists", "- ".repeat(5_000) + "x"],
  ])("%s in each other", (_, text) => {
    const blocks = new Blocks();
    blocks.update(text);
    expect(blocks.isPlain).toBe(true);
  });

  it("a line of a million characters", () => {
    const began = performance.now();
    const blocks = new Blocks();
    const line = "word ".repeat(200_000);
    for (let length = 10_000; length <= line.length; length += 10_000) blocks.update(line.slice(0, length));
    expect(blocks.all.at(-1)!.isPlain).toBe(true);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it("but not deep lines inside of code", () => {
    const text = "```\n" + "> ".repeat(60) + "\n```\n";
    for (const cuts of [[], [6], [50]]) expect(streamed(text, cuts).isPlain).toBe(false);
  });
});
