import { expect, test } from "vitest";
import { apply, emptySession, fold } from "../src/fold";
import type { Topic } from "../src/session";
import type { LogEvent } from "../src/types.gen";
import { goldens, told } from "./golden";

test.each(goldens)("every beginning of the log $name comes to what Python says", ({ events, rows }) => {
  const state = emptySession();
  const known: Record<string, unknown> = {};
  expect(rows).toHaveLength(events.length);
  events.forEach((event, at) => {
    apply(state, at + 1, event, () => {});
    Object.assign(known, rows[at]);
    expect(told(state), `after event ${at + 1}, ${event.type}`).toEqual(known);
  });
});

test.each(goldens)("the log $name again, or parts of it, changes nothing", ({ events }) => {
  const state = fold(events.map((event, at) => ({ seq: at + 1, event })));
  const before = structuredClone(state);
  const touched: string[] = [];
  events.forEach((event, at) => apply(state, at + 1, event, (topic) => touched.push(topic)));
  expect(state).toEqual(before);
  expect(touched).toEqual([]);
});

test.each(goldens)("whoever listens is told of all that changes in $name", ({ events, rows }) => {
  const state = emptySession();
  events.forEach((event, at) => {
    const touched = new Set<Topic>();
    apply(state, at + 1, event, (topic) => touched.add(topic));
    for (const key of Object.keys(rows[at]!)) {
      const [kind, id] = key.split(" ");
      if (kind === "calls" || kind === "writing" || !rows[at]![key]) continue;
      const topic = kind === "message" || kind === "turn" ? `${kind}:${id}` : ["step", "call", "gate"].includes(kind!) ? `turn:${id}` : "tree";
      expect([...touched], `${key} after ${event.type}`).toContain(topic);
    }
  });
});

test("a message that changed is another object, and one that did not is the same", () => {
  for (const { events, rows } of goldens) {
    const state = emptySession();
    events.forEach((event, at) => {
      const before = new Map(state.messages);
      apply(state, at + 1, event, () => {});
      for (const [id, message] of before) {
        if (rows[at]![`message ${id}`]) expect(state.messages.get(id)).not.toBe(message);
      }
      for (const id of before.keys()) {
        const touched = `message ${id}` in rows[at]!;
        if (!touched && !("call" in event) && event.type !== "GateOpened") expect(state.messages.get(id)).toBe(before.get(id));
      }
    });
  }
});

// A new event is to be added here, or this does not compile; then a golden log is to have it.
const EVENTS: Record<LogEvent["type"], true> = {
  TurnStarted: true, AnswerOpened: true, MessageAdded: true, StepStarted: true, StepRestarted: true, StepFinished: true,
  StepInterrupted: true, GateOpened: true, GateAnswered: true, GateClaimed: true, CallMade: true, CallJudged: true, LimitReached: true,
  CallStarted: true, CallBelow: true, CallPaused: true, CallStirred: true, CallResumed: true, CallSettled: true, FilesChanged: true,
  LateArrived: true, HookFinished: true, TurnParked: true, TurnEnding: true, TurnCompleted: true, TurnFailed: true, TurnCancelled: true,
  TitleSet: true, LeafSelected: true, MessageDeleted: true, GrantRevoked: true, RevertStarted: true, FilesReverted: true, CommandDropped: true,
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
    { type: "AnswerOpened", ...base, message: message("a1", "u1", "assistant") },
    { type: "StepStarted", ...base, step: 1 },
    { type: "StepFinished", ...base, step: 1, finish: "stop", parts: [{ type: "text", text: "One" }] },
    { type: "MessageAdded", ...base, message: message("u2", "a1", "user") } as LogEvent,
    { type: "AnswerOpened", ...base, message: message("a2", "u2", "assistant") },
    { type: "StepStarted", ...base, step: 2 },
    { type: "StepFinished", ...base, step: 2, finish: "stop", parts: [{ type: "text", text: "Two" }] },
  ];
  const state = fold(events.map((event, at) => ({ seq: at + 1, event })));
  expect(state.leaf).toBe("a2");
  expect(state.turns.get("t")).toMatchObject({ input: "u1", tip: "a2", answer: "a2", phase: "streaming" });
  expect(state.messages.get("a1")!.parts).toHaveLength(2);
  expect(state.messages.get("a2")!.parts).toMatchObject([{ text: "Two" }, { type: "step", step: 2 }]);
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
      { type: "AnswerOpened", turn: "t1", message: { id: "a1", parent: "u1", role: "assistant", turn: "t1" } },
    ] satisfies LogEvent[]).map((event, at) => ({ seq: at + 1, event })),
  );
  expect(state.leaf).toBe("u2");
  expect([...state.children]).toEqual([[null, ["u1", "u2"]], ["u1", ["a1"]]]);
});
