import { expect, test } from "vitest";
import { apply, emptySession, fold } from "../src/fold";
import type { Topic } from "../src/topics";
import type { LogEvent } from "../src/types.gen";
import { goldens, describeState } from "./golden";

test.each(goldens)("every beginning of the log $name comes to what Python says", ({ events, rows }) => {
  const state = emptySession();
  const known: Record<string, unknown> = {};
  expect(rows).toHaveLength(events.length);
  events.forEach((event, index) => {
    apply(state, index + 1, event, () => {});
    Object.assign(known, rows[index]);
    expect(describeState(state), `after event ${index + 1}, ${event.type}`).toEqual(known);
  });
});

test.each(goldens)("the log $name again, or parts of it, changes nothing", ({ events }) => {
  const state = fold(events.map((event, index) => ({ seq: index + 1, event })));
  const before = structuredClone(state);
  const touched: string[] = [];
  events.forEach((event, index) => apply(state, index + 1, event, (topic) => touched.push(topic)));
  expect(state).toEqual(before);
  expect(touched).toEqual([]);
});

test.each(goldens)("whoever listens is told of all that changes in $name", ({ events, rows }) => {
  const state = emptySession();
  events.forEach((event, index) => {
    const touched = new Set<Topic>();
    apply(state, index + 1, event, (topic) => touched.add(topic));
    for (const key of Object.keys(rows[index]!)) {
      const [kind, id] = key.split(" ");
      if (kind === "calls" || kind === "writing" || !rows[index]![key]) continue;
      const topic = kind === "message" || kind === "turn" ? `${kind}:${id}` : ["step", "call", "gate"].includes(kind!) ? `turn:${id}` : "tree";
      expect([...touched], `${key} after ${event.type}`).toContain(topic);
    }
  });
});

test("a message that changed is another object, and one that did not is the same", () => {
  for (const { events, rows } of goldens) {
    const state = emptySession();
    events.forEach((event, index) => {
      const before = new Map(state.messages);
      apply(state, index + 1, event, () => {});
      for (const [id, message] of before) {
        if (rows[index]![`message ${id}`]) expect(state.messages.get(id)).not.toBe(message);
      }
      for (const id of before.keys()) {
        const touched = `message ${id}` in rows[index]!;
        if (!touched && !("call" in event) && event.type !== "GateOpened") expect(state.messages.get(id)).toBe(before.get(id));
      }
    });
  }
});

// Add a new event here, or this does not compile; then a golden log has to have it.
const EVENTS: Record<LogEvent["type"], true> = {
  TurnStarted: true, InputRefused: true, AgentSwitched: true, AnswerStarted: true, MessageAdded: true, StepStarted: true, StepRestarted: true, RequestRetried: true, FileUploadChanged: true, StepFinished: true,
  StepInterrupted: true, OutputRejected: true, CompactionStarted: true, CompactionFinished: true, CompactionFailed: true, GateOpened: true, GateResolved: true, CallClaimed: true, NestedCallRequested: true, PermissionDecided: true, LimitReached: true,
  CallStarted: true, SubagentStarted: true, CallSuspended: true, CallNotified: true, CallResumed: true,
  ToolStepStarted: true, ToolStepFinished: true, WaitStarted: true, WaitFinished: true, CallFinished: true, FilesChanged: true,
  LateResultReceived: true, HookFinished: true, TurnSuspended: true, TurnFinishing: true, TurnCompleted: true, TurnFailed: true, TurnCancelled: true,
  TitleSet: true, LeafSelected: true, AgentSelected: true, InstructionsSet: true, SessionUpdated: true, AnswerRated: true, MessageDeleted: true, MessagesImported: true, GrantRevoked: true, RevertStarted: true, FilesReverted: true, CommandDropped: true,
};

test("every event that there is occurs in some golden log", () => {
  const seen = new Set<string>(goldens.flatMap(({ events }) => events.map((event) => event.type)));
  expect(Object.keys(EVENTS).filter((type) => !seen.has(type))).toEqual([]);
});

test("a person's message in the middle of a turn is followed by another answer, and both turns of the talk stay whole", () => {
  const base = { turn: "t", at: 1 };
  const message = (id: string, parent: string | null, role: "user" | "assistant") => ({ id, parent, role, turn: "t", parts: [] });
  const events: LogEvent[] = [
    { type: "TurnStarted", ...base, input: message("u1", null, "user") },
    { type: "AnswerStarted", ...base, message: message("a1", "u1", "assistant") },
    { type: "StepStarted", ...base, step: 1 },
    { type: "StepFinished", ...base, step: 1, finish: "stop", parts: [{ type: "text", text: "One" }] },
    { type: "MessageAdded", ...base, message: message("u2", "a1", "user") } as LogEvent,
    { type: "AnswerStarted", ...base, message: message("a2", "u2", "assistant") },
    { type: "StepStarted", ...base, step: 2 },
    { type: "StepFinished", ...base, step: 2, finish: "stop", parts: [{ type: "text", text: "Two" }] },
  ];
  const state = fold(events.map((event, index) => ({ seq: index + 1, event })));
  expect(state.leaf).toBe("a2");
  expect(state.turns.get("t")).toMatchObject({ input: "u1", tip: "a2", answer: "a2", phase: "streaming" });
  expect(state.messages.get("a1")!.parts).toHaveLength(2);
  expect(state.messages.get("a2")!.parts).toMatchObject([{ text: "Two" }, { type: "step", step: 2 }]);
});

test("a retried request is known with its reason, and a step with the model that wrote it", () => {
  const base = { turn: "t", at: 1, step: 1 };
  const problem = { kind: "rate", text: "too many requests" };
  const events: LogEvent[] = [
    { type: "TurnStarted", turn: "t", input: { id: "u", parent: null, role: "user", turn: "t" } },
    { type: "AnswerStarted", turn: "t", message: { id: "a", parent: "u", role: "assistant", by: "first", turn: "t" } },
    { type: "StepStarted", ...base },
    { type: "RequestRetried", ...base, attempt: 2, attempts: 2, seconds: 12, problem },
    { type: "RequestRetried", ...base, attempt: 2, attempts: 2, problem, model: "second" },
    { type: "StepFinished", ...base, finish: "stop", parts: [{ type: "text", text: "Hi" }], model: "second" },
  ];
  const state = fold(events.map((event, index) => ({ seq: index + 1, event })));
  expect(state.turns.get("t")!.steps[0]!.retries.map(({ seconds, model }) => [seconds, model])).toEqual([[12, undefined], [undefined, "second"]]);
  expect(state.messages.get("a")!.parts!.at(-1)).toMatchObject({ type: "step", model: "second" });
  expect(state.turns.get("t")!.phase).toBe("streaming");
});

test("a suspended call says what it waits for", () => {
  const base = { turn: "t", at: 1 };
  const events: LogEvent[] = [
    { type: "TurnStarted", turn: "t", input: { id: "u", parent: null, role: "user", turn: "t" } },
    { type: "AnswerStarted", turn: "t", message: { id: "a", parent: "u", role: "assistant", turn: "t" } },
    { type: "StepStarted", ...base, step: 1 },
    { type: "StepFinished", ...base, step: 1, finish: "tool_calls", parts: [{ type: "tool", call: "c", name: "build", arguments: "{}" }] },
    { type: "CallStarted", ...base, call: "c", tool: "build", arguments: "{}", hash: "", key: "c" },
    { type: "WaitStarted", ...base, call: "c", wait: "c.wait.1", kind: "external", label: "MCP task (build)" },
    { type: "CallSuspended", ...base, call: "c", waits: ["c.wait.1"] },
  ];
  const state = fold(events.map((event, index) => ({ seq: index + 1, event })));
  expect(state.turns.get("t")!.calls.get("c")).toMatchObject({ state: "waiting", waitsFor: "MCP task (build)" });
});

test("an event of a newer server is passed over", () => {
  const state = emptySession();
  apply(state, 1, { type: "SomethingNew", turn: "t" } as unknown as LogEvent, () => {});
  apply(state, 2, { type: "TitleSet", turn: "t", title: "Lunch" }, () => {});
  expect(state).toMatchObject({ seq: 2, title: "Lunch" });
});

test("a branch that grows beside the selected one does not pull the selection over", () => {
  const user = (id: string, turn: string) => ({ id, parent: null, role: "user" as const, turn });
  const state = fold(
    ([
      { type: "TurnStarted", turn: "t1", input: user("u1", "t1") },
      { type: "TurnStarted", turn: "t2", input: user("u2", "t2") },
      { type: "AnswerStarted", turn: "t1", message: { id: "a1", parent: "u1", role: "assistant", turn: "t1" } },
    ] satisfies LogEvent[]).map((event, index) => ({ seq: index + 1, event })),
  );
  expect(state.leaf).toBe("u2");
  expect([...state.children]).toEqual([[null, ["u1", "u2"]], ["u1", ["a1"]]]);
});
