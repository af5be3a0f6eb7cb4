import { describe, expect, it } from "vitest";
import { fold, type FileChange, type FilesPart, type LogEvent } from "@everturn/client";
import { previewRevert, revertShownAt, currentTree } from "../../src/tree/revertPreview";

let seq = 0;
const entry = (event: LogEvent) => ({ seq: ++seq, event });

/** A turn that changes files in one step. */
function turn(number: number, before: string, after: string, changes: FileChange[], root = "work"): ReturnType<typeof entry>[] {
  const [turn, at] = [`t${number}`, number * 10];
  const message = { id: `m${number}`, parent: number > 1 ? `m${number - 1}` : null, role: "assistant" as const, turn };
  return [
    entry({ type: "TurnStarted", at, turn, parent: message.parent }),
    entry({ type: "AnswerStarted", at, turn, message }),
    entry({ type: "FilesChanged", at: at + 1, turn, step: 1, before, after, root, changes }),
    entry({ type: "TurnCompleted", at: at + 2, turn }),
  ];
}

const log = () => {
  seq = 0;
  return [
    ...turn(1, "T0", "T1", [{ path: "a", kind: "added" }, { path: "b", kind: "modified" }]),
    ...turn(2, "T1", "T2", [{ path: "a", kind: "modified" }, { path: "c", kind: "deleted" }]),
    ...turn(3, "X0", "X1", [{ path: "z", kind: "added" }], "data"),
  ];
};
const part = (state: ReturnType<typeof fold>, message: string) => state.messages.get(message)!.parts!.find((candidate) => candidate.type === "files") as FilesPart;
const brief = (all: ReturnType<typeof previewRevert>) => all.map((file) => `${file.path}: ${file.effect}`);

describe("a revert", () => {
  it("undoes a step and all that came after it, beneath its root alone", () => {
    const state = fold(log());
    expect(brief(previewRevert(state, part(state, "m1"), "before"))).toEqual(["a: go", "b: be as it was", "c: come back"]);
    expect(brief(previewRevert(state, part(state, "m1"), "after"))).toEqual(["a: be as it was", "c: come back"]);
    expect(brief(previewRevert(state, part(state, "m2"), "after"))).toEqual([]);
    expect(brief(previewRevert(state, part(state, "m3"), "before"))).toEqual(["z: go"]);
  });

  it("is where the files are until a later turn changes them", () => {
    const entries = log();
    expect(currentTree(fold(entries), "work")).toBe("T2");
    entries.push(entry({ type: "FilesReverted", at: 50, root: "work", before: "T2", after: "T0", by: "ada" }));
    expect(currentTree(fold(entries), "work")).toBe("T0");
    expect(currentTree(fold(entries), "data")).toBe("X1");
    expect(currentTree(fold([...entries, ...turn(6, "T0", "T3", [{ path: "d", kind: "added" }])]), "work")).toBe("T3");
  });

  it("is told at the step whose files it brought back, while it is the last", () => {
    const entries = [...log(), entry({ type: "FilesReverted", at: 50, root: "work", before: "T2", after: "T1", by: "ada" })];
    const state = fold(entries);
    expect(revertShownAt(state, part(state, "m2"))?.by).toBe("ada"); // T1 is before it, and after m1: it is shown once
    expect(revertShownAt(state, part(state, "m1"))).toBeNull();
    expect(revertShownAt(state, part(state, "m3"))).toBeNull();
    const reverted = fold([...entries, entry({ type: "FilesReverted", at: 60, root: "work", before: "T1", after: "T2", by: "bob" })]);
    expect(revertShownAt(reverted, part(reverted, "m1"))).toBeNull();
    expect(revertShownAt(reverted, part(reverted, "m2"))?.by).toBe("bob");
  });
});
