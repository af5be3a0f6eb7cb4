import { expect, test } from "vitest";
import type { ContextReport } from "@everturn/client";
import { buildBar, lastTurns, nextStep, urgency } from "../../src/conversation/contextReport";

const empty: ContextReport = {
  model: "m", window: 0, limit: 0, used: 0, estimated: false, share: null, free: null, clear_at: 0, summarize_at: 0, policy: "auto", compactions: 0,
  strikes: 0, paused: false, summarizing: false, cost: null, parts: [],
};
const report: ContextReport = {
  ...empty, window: 1000, limit: 800, used: 400, share: 0.5, clear_at: 600, summarize_at: 720, policy: "auto",
  parts: [{ kind: "instructions", tokens: 100 }, { kind: "person", tokens: 300 }],
};

test("the bar is as long as the window: what fills it, what is free, what is for the answer", () => {
  const { pieces, marks } = buildBar(report);
  expect(pieces.map(({ kind, tokens, width }) => [kind, tokens, width])).toEqual([
    ["instructions", 100, 10], ["person", 300, 30], ["free", 400, 40], ["reserve", 200, 20],
  ]);
  expect(marks).toEqual([{ at: "clear", tokens: 600, place: 60 }, { at: "summarise", tokens: 720, place: 72 }]);
});

test("a bar without a known window is full of what is used, and has no marks", () => {
  const { pieces, marks } = buildBar({ ...empty, used: 400, parts: report.parts });
  expect(pieces.map(({ kind, width }) => [kind, width])).toEqual([["instructions", 25], ["person", 75]]);
  expect(marks).toEqual([]);
});

test.each([[900, 1000], [1200, 1200]])("a bar never overflows: %i tokens of 800", (used, total) => {
  const { pieces } = buildBar({ ...report, used, parts: [{ kind: "answers", tokens: used }] });
  expect(pieces.reduce((sum, piece) => sum + piece.width, 0)).toBeCloseTo(100);
  expect(pieces[0]!.width).toBeCloseTo((used / total) * 100);
  expect(pieces.some((piece) => piece.kind === "free")).toBe(false);
});

test("it warns from 0.85 of the limit, and not below", () => {
  expect([0, 0.84, 0.85, 0.99, 1, 1.3].map((share) => urgency({ ...report, share }))).toEqual(["", "", "warn", "warn", "full", "full"]);
  expect(urgency({ ...empty, used: 10_000_000 })).toBe("");
});

test("what happens at the limit depends on the policy", () => {
  expect(nextStep(report)).toBe("summarise");
  expect(nextStep({ ...report, paused: true })).toBe("paused");
  expect(nextStep({ ...report, policy: "off" })).toBe("off");
  expect(nextStep({ ...report, policy: "last_turns(7)" })).toBe("lastTurns");
  expect(nextStep(empty)).toBe("unknown");
  expect(lastTurns("last_turns(7)")).toBe(7);
});
