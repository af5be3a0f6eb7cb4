import { expect, test } from "vitest";
import type { Gate, GateView } from "@everturn/client";
import { answerEach, argumentLine, countByTool, filterGates, groupGates, isBatchable, ROW_LENGTH, rowWarnings, takeGates } from "../../src/gates/batch";

const gate = (id: string, more: Partial<Gate> = {}): Gate => ({ id, turn: "t", call: id, tool: "send_mail", arguments: '{"to":"ann@example.org"}', hash: `hash of ${id}`, ...more });
const view = (id: string, session: string, opened: number, more: Partial<Gate> = {}): GateView => ({ session, title: `about ${session}`, opened, gate: gate(id, more), claim: null });

test("a batch has only calls that ask whether they may run", () => {
  const kinds = ["call", "egress", "loop", "manual", "result", "question", "form", "client"] as const;
  expect(kinds.filter((kind) => isBatchable(gate("g", { kind })))).toEqual(["call", "egress"]);
  expect(isBatchable(gate("g"))).toBe(true);
});

test("a row has the arguments in their order, and writes out what cannot be seen", () => {
  expect(argumentLine(gate("g", { arguments: '{"to":"ann","body":"a\\nb","n":1.0}' }))).toBe("to: ann · body: a b · n: 1.0");
  const schema = { properties: { to: {}, subject: {}, body: {} } };
  expect(argumentLine(gate("g", { arguments: '{"body":"b","extra":1,"subject":"s","to":"ann"}' }), schema)).toBe("to: ann · subject: s · body: b · extra: 1");
  expect(argumentLine(gate("g", { arguments: '{"to":"a\u202eb"}' }))).not.toContain("\u202e");
});

test("a row says what it does not show, and what to look at", () => {
  expect(rowWarnings(gate("g"))).toEqual({ risks: 0, isCut: false });
  expect(rowWarnings(gate("g", { arguments: JSON.stringify({ body: "x".repeat(ROW_LENGTH) }) }))).toEqual({ risks: 0, isCut: true });
  expect(rowWarnings(gate("g", { tool: "run", arguments: '{"command":"rm -rf /"}' })).risks).toBeGreaterThan(0);
  expect(rowWarnings(gate("g", { arguments: '{"to":"\u0430nn@example.org"}' })).risks).toBe(1); // a Cyrillic letter
  expect(rowWarnings(gate("g", { kind: "egress" })).risks).toBe(1);
});

test("gates are grouped by session, tool or agent, oldest or newest first", () => {
  const views = [view("a", "s1", 3), view("b", "s2", 1, { tool: "run" }), view("c", "s1", 2)];
  const agentOf = (session: string) => (session === "s1" ? "writer" : "");
  const keys = (...how: ["session" | "tool" | "agent", boolean]) => groupGates(views, ...how, agentOf).map(({ key, gates }) => [key, ...gates.map((each) => each.gate.id)]);
  expect(keys("session", false)).toEqual([["s2", "b"], ["s1", "c", "a"]]);
  expect(keys("session", true)).toEqual([["s1", "a", "c"], ["s2", "b"]]);
  expect(keys("tool", false)).toEqual([["run", "b"], ["send_mail", "c", "a"]]);
  expect(keys("agent", false)).toEqual([["", "b"], ["writer", "c", "a"]]);
  expect(takeGates(groupGates(views, "session", false, agentOf), 2).map(({ gates }) => gates.length)).toEqual([1, 1]);
  expect(countByTool(views.map((each) => each.gate))).toEqual([["send_mail", 2], ["run", 1]]);
});

test("a filter looks for every word in the tool, the title and the arguments", () => {
  const views = [view("a", "s1", 1), view("b", "s2", 2, { tool: "run", arguments: '{"command":"ls"}' })];
  const found = (tool: string, text: string) => filterGates(views, tool, text).map((each) => each.gate.id);
  expect([found("", ""), found("run", ""), found("", "ANN s1"), found("", "ann s2"), found("run", "ann")]).toEqual([["a", "b"], ["b"], ["a"], [], []]);
});

test("each gate is answered once, by itself, and has its own outcome", async () => {
  const items = Array.from({ length: 100 }, (_, index) => ({ session: "s", gate: gate(`g${index}`) }));
  const sent: string[] = [];
  let [running, most] = [0, 0];
  const progress: number[] = [];
  const outcomes = await answerEach(items, async (item) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    sent.push(item.gate.hash);
    running--;
    return item.gate.id === "g7" ? "gate_closed" : "";
  }, (count) => progress.push(count));
  expect(new Set(sent).size).toBe(100);
  expect(sent).toHaveLength(100);
  expect(most).toBeLessThanOrEqual(6);
  expect(progress.at(-1)).toBe(100);
  expect([...outcomes].filter(([, code]) => code)).toEqual([["g7", "gate_closed"]]);
});
