import { expect, test } from "vitest";
import type { Message } from "@everturn/client";
import { buildOutline } from "../../src/tree/outline";

const message = (id: string, parent: string | null, more: Partial<Message> = {}): Message => ({ id, parent, role: "user", parts: [{ type: "text", text: id }], ...more });

test("a branch is one level below the message from which it begins, and the selected one is marked", () => {
  const rows = buildOutline([message("a", null), message("b", "a"), message("c", "a"), message("d", "c"), message("e", "b")], "d");
  expect(rows.map(({ id, level, parent, branches, isLast, isCurrent }) => [id, level, parent, branches, isLast, isCurrent])).toEqual([
    ["a", 1, "", 2, false, true],
    ["b", 2, "a", 0, false, false],
    ["e", 2, "a", 0, true, false],
    ["c", 2, "a", 0, false, true],
    ["d", 2, "a", 0, true, true],
  ]);
});

test("a long stretch is folded until it is opened, and hidden messages are left out", () => {
  const chain = Array.from({ length: 12 }, (_, at) => message(`m${at}`, at ? `m${at - 1}` : null, { hidden: at === 3 }));
  const rows = buildOutline(chain, "m11");
  expect(rows.map((row) => row.message?.id ?? row.folded)).toEqual(["m0", "m1", 7, "m10", "m11"]);
  expect(buildOutline(chain, "m11", new Set([rows[2]!.id]))).toHaveLength(11);
});

test("a conversation of ten thousand messages is a few rows", () => {
  const chain = Array.from({ length: 10_000 }, (_, at) => message(`m${at}`, at ? `m${at - 1}` : null));
  expect(buildOutline(chain, "m9999")).toHaveLength(5);
});
