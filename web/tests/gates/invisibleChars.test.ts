import { expect, test } from "vitest";
import { countInvisible, findLookalikes, escapeInvisible, splitInvisible, type InvisibleKind } from "../../src/gates/invisibleChars";

const ONE: [number, InvisibleKind][] = [
  [0x00, "control"], [0x07, "control"], [0x08, "control"], [0x0b, "control"], [0x0d, "control"], [0x1b, "control"], [0x7f, "control"], [0x85, "control"], [0x9b, "control"],
  [0x2028, "control"], [0x2029, "control"], [0xa0, "space"], [0x1680, "space"], [0x2000, "space"], [0x2003, "space"], [0x2009, "space"], [0x200a, "space"], [0x202f, "space"], [0x205f, "space"], [0x3000, "space"],
  [0xad, "zero"], [0x34f, "zero"], [0x180e, "zero"], [0x200b, "zero"], [0x200c, "zero"], [0x200d, "zero"], [0x2060, "zero"], [0x2061, "zero"], [0x2064, "zero"], [0xfeff, "zero"], [0xfe00, "zero"], [0xfe0e, "zero"], [0xfe0f, "zero"],
  [0xe0100, "zero"], [0xe01ef, "zero"], [0x180b, "zero"], [0x1d173, "zero"], [0xfff9, "zero"], [0x600, "zero"], [0x206a, "zero"],
  [0x61c, "bidi"], [0x200e, "bidi"], [0x200f, "bidi"], [0x202a, "bidi"], [0x202b, "bidi"], [0x202c, "bidi"], [0x202d, "bidi"], [0x202e, "bidi"], [0x2066, "bidi"], [0x2067, "bidi"], [0x2068, "bidi"], [0x2069, "bidi"],
  [0xe0001, "tag"], [0xe0020, "tag"], [0xe0041, "tag"], [0xe007a, "tag"], [0xe007f, "tag"],
  [0x115f, "filler"], [0x1160, "filler"], [0x3164, "filler"], [0xffa0, "filler"], [0x2800, "filler"], [0xfffc, "filler"], [0x17b4, "filler"],
  [0xe000, "private"], [0xf8ff, "private"], [0xf0000, "private"], [0xd800, "private"], [0xffff, "private"],
];

test.each(ONE)("U+%s is written out", (code, kind) => {
  const text = `rm${String.fromCodePoint(code)}x`;
  const pieces = splitInvisible(text);
  expect(pieces.map((piece) => piece.text).join("")).toBe(text);
  expect(pieces).toHaveLength(3);
  expect(pieces[1]).toMatchObject({ at: 2, kind, code: `U+${code.toString(16).toUpperCase().padStart(4, "0")}` });
});

test.each(["ls -la", "你好，世界", "a\tb\nc", "é", "e\u0301", "👍🏽", "❤️", "1️⃣", "👨‍👩‍👧", "🏳️‍🌈", "日本語テキスト", "Привет", "مرحبا", "~!@#$%^&*", "ﬁ", ""])("nothing is hidden in %j", (text) => {
  expect(countInvisible(text)).toBe(0);
  expect(splitInvisible(text).map((piece) => piece.text).join("")).toBe(text);
});

test("what only pretends to belong to a picture is written out", () => {
  expect(countInvisible("❤\ufe0f\ufe0f")).toBe(1);
  expect(countInvisible("a\u200db")).toBe(1);
  expect(countInvisible("👍\u200dx")).toBe(1);
  expect(countInvisible("1\u200d2")).toBe(1);
});

test("every piece says where it stands", () => {
  const text = "a\u202eb😀\u200bc\u{e0041}d";
  for (const piece of splitInvisible(text)) expect(text.slice(piece.at, piece.at + piece.text.length)).toBe(piece.text);
  expect(escapeInvisible(text)).toBe("a⟨U+202E⟩b😀⟨U+200B⟩c⟨U+E0041⟩d");
});

test.each([
  ["pаypal.com", "mixed"], ["gооgle", "mixed"], ["ехample", "mixed"], ["αdmin", "mixed"], ["rооt", "mixed"], ["cat сору now", "foreign"], ["run ｒｍ now", "styled"], ["𝐫𝐦 -rf x", "styled"], ["Ⓡⓜ", "styled"], ["login аѕ root", "foreign"],
])("%s may look like something else", (text, why) => expect(findLookalikes(text).map((lookalike) => lookalike.why)).toContain(why));

test.each(["rm -rf x", "Привет мир", "Ελληνικά", "naïve café", "你好abc", "Привет, world", "x² + y²", "日本Tokyo"])("%s is what it is", (text) => expect(findLookalikes(text)).toEqual([]));
