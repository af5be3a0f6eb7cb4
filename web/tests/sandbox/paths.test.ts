import { describe, expect, test } from "vitest";
import { within, LIMITS, type Entry, type Place } from "../../src/sandbox/files";
import { namesOf } from "../../src/sandbox/paths";
import { excerpt } from "../../src/sandbox/calls";

describe("a path", () => {
  test.each([["a", ["a"]], ["a/b.md", ["a", "b.md"]], ["a/b/", ["a", "b"]], ["..a", ["..a"]], ["日记/今天.md", ["日记", "今天.md"]], ["😀", ["😀"]]])(
    "%j has these names", (path, names) => expect(namesOf(path)).toEqual(names),
  );
  test.each(["", "/", ".", "..", "../a", "a/../b", "a/./b", "/a", "a//b", "a\\b", "a\0", "\u0085", "a:b", " a", "a ", "a.", "\ud83d", "a/".repeat(9)])(
    "%j is none", (path) => expect(() => namesOf(path)).toThrow(/a path|a name/),
  );
  test("may be the root where that is meant", () => {
    for (const path of ["", ".", "/"]) expect(namesOf(path, true)).toEqual([]);
    expect(() => namesOf("..", true)).toThrow();
  });
});

/** A place that only counts. */
function place(): Place & { all: Map<string, number> } {
  const all = new Map<string, number>();
  return {
    all,
    list: async () => [...all].map(([name, size]): Entry => ({ name, kind: "file", size })),
    read: async () => new Blob(["x"]),
    write: async (names, content) => void all.set(names.join("/"), content.size),
    sizes: async () => new Map(all),
    clear: async () => all.clear(),
  };
}

describe("files", () => {
  test("are so many and no more", async () => {
    const there = place();
    for (let at = 0; at < LIMITS.files; at++) there.all.set(`f${at}`, 1);
    const files = within(there, "s");
    await expect(files.write("one-more", "x")).rejects.toThrow("at most 1000 files");
    await expect(files.write("f0", "again")).resolves.toBe(5);
  });
  test("are so large and no larger, counted in bytes", async () => {
    const there = place();
    const files = within(there, "s");
    await expect(files.write("a", "字".repeat(LIMITS.file / 3 + 1))).rejects.toThrow("at most 1000000 bytes");
    there.all.set("big", LIMITS.all);
    await expect(files.write("a", "x")).rejects.toThrow("all files have at most");
    await expect(files.write("big", "x")).resolves.toBe(1); // in the place of what was there
  });
  test("are listed in order", async () => {
    const there = place();
    for (const name of ["b", "a", "c"]) there.all.set(name, 1);
    expect((await within(there, "s").list("")).map((one) => one.name)).toEqual(["a", "b", "c"]);
  });
});

describe("an excerpt", () => {
  const text = "1\n2\n3\n4";
  test("is all of a short text", () => expect(excerpt(text, 1, 2000)).toBe(text));
  test("says how to read on", () => expect(excerpt(text, 2, 2)).toBe("2\n3\n(1 more lines; read on with offset 4)"));
  test("ends without a word at the end", () => expect(excerpt(text, 4, 1)).toBe("4"));
  test("is none beyond the end", () => expect(() => excerpt(text, 5, 1)).toThrow("it has 4 lines"));
  test("has a length, whatever the lines", () => {
    const long = Array.from({ length: 1000 }, () => "x".repeat(99)).join("\n");
    expect(excerpt(long, 1, 2000)).toMatch(/\n\(500 more lines; read on with offset 501\)$/);
    expect(excerpt("y".repeat(60_000), 1, 1)).toMatch(/y\n\(line 1 goes on for 10000 characters\)$/);
  });
});
