import { expect, test } from "vitest";
import { fold } from "../src/fold";
import type { LogEvent } from "../src/types.gen";
import { runSeconds } from "../src/views";

const at = (at: number, event: object) => ({ turn: "t", at, ...event }) as unknown as LogEvent;
const gate = (id: string, kind: string) => ({ id, turn: "t", call: "c", tool: "look", arguments: "{}", hash: "", kind });
const BEGUN = [
  at(0, { type: "TurnStarted", input: { id: "u", parent: null, role: "user" } }),
  at(0, { type: "AnswerStarted", message: { id: "a", parent: "u", role: "assistant" } }),
  at(0, { type: "StepStarted", step: 1 }),
  at(1, { type: "StepFinished", step: 1, finish: "tool_calls", parts: [{ type: "tool", call: "c", name: "look", arguments: "{}" }] }),
];
const START = at(10, { type: "CallStarted", call: "c", tool: "look", arguments: "{}", hash: "", key: "c", read_only: true });

function ran(events: LogEvent[], now = 1000): number {
  const turn = fold([...BEGUN, ...events].map((event, seq) => ({ seq: seq + 1, event }))).turns.get("t")!;
  return runSeconds(turn, turn.calls.get("c")!, now);
}
const finished = (when: number, more: object = {}) => at(when, { type: "CallFinished", call: "c", state: "completed", output: { text: "" }, ...more });
const opened = (when: number, id: string, kind: string) => at(when, { type: "GateOpened", gate: gate(id, kind) });
const answered = (when: number, id: string) => at(when, { type: "GateResolved", gate: id, call: "c", resolution: { allowed: true } });

test("a call that never started took no time, and one that runs takes it until now", () => {
  expect(ran([])).toBe(0);
  expect(ran([START], 14)).toBe(4);
  expect(ran([START, finished(12)])).toBe(2);
});

test("the time before it was allowed, and that of a review, is the person's", () => {
  expect(ran([opened(2, "g", "call"), answered(9, "g"), START, finished(12)])).toBe(2);
  expect(ran([START, opened(13, "g", "result"), answered(52, "g"), finished(52)])).toBe(3);
  expect(ran([START, opened(13, "g", "result")], 500)).toBe(3); // under review
});

test("a question that a tool asks counts for nobody twice", () => {
  expect(ran([START, opened(11, "f", "form"), opened(12, "h", "form"), answered(20, "f"), answered(30, "h"), finished(32)])).toBe(3);
  expect(ran([START, opened(11, "f", "form"), opened(12, "h", "form"), answered(15, "h"), answered(30, "f"), finished(32)])).toBe(3);
  expect(ran([START, opened(11, "f", "form"), answered(20, "f"), opened(25, "h", "form"), answered(30, "h"), finished(31)])).toBe(7);
});

test("what a client does is work, and what runs on runs on", () => {
  expect(ran([START, opened(11, "k", "client"), answered(19, "k"), finished(20)])).toBe(10);
  expect(ran([START, finished(12, { state: "cancelled", still_running: true })], 40)).toBe(30);
  expect(ran([START, finished(12, { state: "cancelled", still_running: true }), at(25, { type: "LateResultReceived", call: "c", output: { text: "" } })], 40)).toBe(15);
});
