import { describe, expect, test } from "vitest";
import { limitedFiles, LIMITS } from "../../src/sandbox/files";
import type { Entry, FileStorage } from "../../src/sandbox/fileStorage";
import { parsePath } from "../../src/sandbox/paths";
import { excerpt } from "../../src/sandbox/calls";

describe("a path", () => {
  test.each([["a", ["a"]], ["a/b.md", ["a", "b.md"]], ["a/b/", ["a", "b"]], ["..a", ["..a"]], ["日记/今天.md", ["日记", "今天.md"]], ["😀", ["😀"]]])(
    "%j has these names", (path, names) => expect(parsePath(path)).toEqual(names),
  );
  test.each(["", "/", ".", "..", "../a", "a/../b", "a/./b", "/a", "a//b", "a\\b", "a\0", "\u0085", "a:b", " a", "a ", "a.", "\ud83d", "a/".repeat(9)])(
    "%j is none", (path) => expect(() => parsePath(path)).toThrow(/a path|a name/),
  );
  test("may be the root where that is meant", () => {
    for (const path of ["", ".", "/"]) expect(parsePath(path, true)).toEqual([]);
    expect(() => parsePath("..", true)).toThrow();
  });
});

/** A storage that only counts. */
function countingStorage(): FileStorage & { all: Map<string, number> } {
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
    const storage = countingStorage();
    for (let at = 0; at < LIMITS.files; at++) storage.all.set(`f${at}`, 1);
    const files = limitedFiles(storage, "s");
    await expect(files.write("one-more", "x")).rejects.toThrow("at most 1000 files");
    await expect(files.write("f0", "again")).resolves.toBe(5);
  });
  test("are so large and no larger, counted in bytes", async () => {
    const storage = countingStorage();
    const files = limitedFiles(storage, "s");
    await expect(files.write("a", "字".repeat(LIMITS.file / 3 + 1))).rejects.toThrow("at most 1000000 bytes");
    storage.all.set("big", LIMITS.all);
    await expect(files.write("a", "x")).rejects.toThrow("all files have at most");
    await expect(files.write("big", "x")).resolves.toBe(1); // replaces the old file
  });
  test("are listed in order", async () => {
    const storage = countingStorage();
    for (const name of ["b", "a", "c"]) storage.all.set(name, 1);
    expect((await limitedFiles(storage, "s").list("")).map((entry) => entry.name)).toEqual(["a", "b", "c"]);
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
