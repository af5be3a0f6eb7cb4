/** Comparisons: which turns are shown side by side, and when they are not any more. */
import { apply, emptySession, path, type LogEvent, type SessionState } from "@everturn/client";
import { expect, test } from "vitest";
import { comparisonAtEnd, messagesOfTurn, tokensOf } from "../../src/tree/comparison";

const answerOf = (turn: string) => ({ type: "AnswerStarted", turn, message: { id: `${turn}.a`, parent: "q", role: "assistant", parts: [], turn, by: turn } });

function fold(...events: object[]): SessionState {
  const state = emptySession();
  events.forEach((event, index) => apply(state, index + 1, event as LogEvent, () => {}));
  return state;
}

const STARTS = [
  { type: "TurnStarted", turn: "one", parent: null, input: { id: "q", parent: null, role: "user", parts: [], turn: "one" }, options: { model: "one" }, command: "k" },
  { type: "TurnStarted", turn: "two", parent: "q", options: { model: "two" }, command: "k" },
];

test("the turns of one command are a comparison from their start on, in the order of their models", () => {
  const started = fold(...STARTS);
  expect(comparisonAtEnd(started, path(started))).toEqual({ at: 0, turns: ["one", "two"] });
  const answered = fold(...STARTS, answerOf("two"), answerOf("one"));
  expect(answered.leaf).toBe("two.a");
  expect(comparisonAtEnd(answered, path(answered))).toEqual({ at: 0, turns: ["one", "two"] });
  expect(messagesOfTurn(answered, answered.turns.get("one")!).map((message) => message.id)).toEqual(["one.a"]);
  expect(tokensOf(answered.turns.get("one")!)).toBe(0);
});

test("another answer, a later message or a deleted column ends it", () => {
  const again = fold(...STARTS, answerOf("one"), answerOf("two"), { type: "TurnStarted", turn: "three", parent: "q", options: {}, command: "other" }, answerOf("three"));
  expect(comparisonAtEnd(again, path(again))).toBeNull();
  const more = { type: "TurnStarted", turn: "next", parent: "one.a", input: { id: "q2", parent: "one.a", role: "user", parts: [], turn: "next" }, command: "n" };
  const later = fold(...STARTS, answerOf("one"), answerOf("two"), more);
  expect(comparisonAtEnd(later, path(later))).toBeNull();
  const removed = fold(...STARTS, answerOf("one"), answerOf("two"), { type: "MessageDeleted", message: "two.a" });
  expect(comparisonAtEnd(removed, path(removed))).toBeNull();
});
