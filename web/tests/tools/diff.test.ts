import { expect, test } from "vitest";
import { diff, isDiff, readDiff } from "../../src/tools/diff";

const show = (before: string, after: string) => diff(before, after).map((line) => line.sign + line.text);

test("what becomes of a text", () => {
  expect(show("a\nb\nc", "a\nx\nc")).toEqual([" a", "-b", "+x", " c"]);
  expect(show("a", "a")).toEqual([" a"]);
  expect(show("a\nb", "b\na\nb")).toEqual(["+b", " a", " b"]);
  expect(show("", "a")).toEqual(["-", "+a"]);
});

test("both texts can be read out of it, whatever they are", () => {
  let seed = 3;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 300; round++) {
    const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n");
    const [before, after] = [text(), text()];
    const lines = diff(before, after);
    expect(lines.filter((line) => line.sign !== "+").map((line) => line.text).join("\n")).toBe(before);
    expect(lines.filter((line) => line.sign !== "-").map((line) => line.text).join("\n")).toBe(after);
  }
});

test("very long texts are replaced, not compared", () => {
  const lines = diff("a\n".repeat(5000), "b\n".repeat(5000));
  expect(lines.filter((line) => line.sign === "-")).toHaveLength(5000);
});

test("of a long file with a few changes only those are shown", () => {
  const file = Array.from({ length: 2000 }, (_, i) => `line ${i}`);
  const changed = file.map((line, i) => (i % 100 === 50 ? `${line}, changed` : line));
  const signs = diff(file.join("\n"), changed.join("\n")).map((line) => line.sign);
  expect([" ", "-", "+"].map((sign) => signs.filter((each) => each === sign).length)).toEqual([1980, 20, 20]);
});

test("a unified diff keeps all of its lines", () => {
  const text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n---- b\n+++ c\n\\ No newline at end of file";
  expect(isDiff(text)).toBe(true);
  expect(readDiff(text)).toEqual([
    { sign: "h", text: "--- a/x" }, { sign: "h", text: "+++ b/x" }, { sign: "@", text: "@@ -1,2 +1,2 @@" }, { sign: " ", text: "a" }, { sign: "-", text: "--- b" }, { sign: "+", text: "++ c" }, { sign: "h", text: "\\ No newline at end of file" },
  ]);
  expect([isDiff("hello"), isDiff("- a\n+ b"), isDiff("")]).toEqual([false, false, false]);
});
