import { expect, test } from "vitest";
import { fold } from "../src/fold";
import type { LogEvent } from "../src/types.gen";
import { ranFor } from "../src/views";

const at = (at: number, event: object) => ({ turn: "t", at, ...event }) as unknown as LogEvent;
const gate = (id: string, kind: string) => ({ id, turn: "t", call: "c", tool: "look", arguments: "{}", hash: "", kind });
const BEGUN = [
  at(0, { type: "TurnStarted", input: { id: "u", parent: null, role: "user" } }),
  at(0, { type: "AnswerOpened", message: { id: "a", parent: "u", role: "assistant" } }),
  at(0, { type: "StepStarted", step: 1 }),
  at(1, { type: "StepFinished", step: 1, finish: "tool_calls", parts: [{ type: "tool", call: "c", name: "look", arguments: "{}" }] }),
];
const START = at(10, { type: "CallStarted", call: "c", tool: "look", arguments: "{}", hash: "", effects: "read", key: "c" });

function ran(events: LogEvent[], now = 1000): number {
  const turn = fold([...BEGUN, ...events].map((event, seq) => ({ seq: seq + 1, event }))).turns.get("t")!;
  return ranFor(turn, turn.calls.get("c")!, now);
}
const settled = (when: number, more: object = {}) => at(when, { type: "CallSettled", call: "c", state: "completed", output: { text: "" }, ...more });
const opened = (when: number, id: string, kind: string) => at(when, { type: "GateOpened", gate: gate(id, kind) });
const answered = (when: number, id: string) => at(when, { type: "GateAnswered", gate: id, call: "c", verdict: { allowed: true } });

test("a call that never started took no time, and one that runs takes it until now", () => {
  expect(ran([])).toBe(0);
  expect(ran([START], 14)).toBe(4);
  expect(ran([START, settled(12)])).toBe(2);
});

test("the time before it was allowed, and that of a review, is the person's", () => {
  expect(ran([opened(2, "g", "call"), answered(9, "g"), START, settled(12)])).toBe(2);
  expect(ran([START, opened(13, "g", "result"), answered(52, "g"), settled(52)])).toBe(3);
  expect(ran([START, opened(13, "g", "result")], 500)).toBe(3); // it is being read
});

test("a question that a tool asks counts for nobody twice", () => {
  expect(ran([START, opened(11, "f", "form"), opened(12, "h", "form"), answered(20, "f"), answered(30, "h"), settled(32)])).toBe(3);
  expect(ran([START, opened(11, "f", "form"), opened(12, "h", "form"), answered(15, "h"), answered(30, "f"), settled(32)])).toBe(3);
  expect(ran([START, opened(11, "f", "form"), answered(20, "f"), opened(25, "h", "form"), answered(30, "h"), settled(31)])).toBe(7);
});

test("what a client does is work, and what runs on runs on", () => {
  expect(ran([START, opened(11, "k", "client"), answered(19, "k"), settled(20)])).toBe(10);
  expect(ran([START, settled(12, { state: "cancelled", out: true })], 40)).toBe(30);
  expect(ran([START, settled(12, { state: "cancelled", out: true }), at(25, { type: "LateArrived", call: "c", output: { text: "" } })], 40)).toBe(15);
});
