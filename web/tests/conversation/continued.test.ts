// @vitest-environment happy-dom
import { expect, test } from "vitest";

import { joinContinued } from "../../src/conversation/message";

const text = (words: string) => ({ type: "text" as const, text: words });
const step = (number: number, continues = false) => ({ type: "step" as const, step: number, finish: continues ? ("length" as const) : ("stop" as const), continues });
const thought = { type: "reasoning" as const, text: "hm" };
const call = { type: "tool" as const, call: "c", name: "look", arguments: "{}" };

test("a text that was cut and its continuations are shown as one", () => {
  const { shown, into } = joinContinued([text("The qu"), step(1, true), text("ick "), step(2, true), text("fox"), step(3)]);
  expect(shown).toEqual([text("The quick fox"), null, null, null, null, step(3)]);
  expect(into).toBe(-1);
});

test("the next step continues the text that was cut last", () => {
  expect(joinContinued([text("Before."), step(1), text("The qu"), step(2, true)]).into).toBe(2);
  expect(joinContinued([text("The qu"), step(1, true), text("ick "), step(2, true)]).into).toBe(0);
});

test("reasoning in between splits no text, a call does", () => {
  expect(joinContinued([text("a"), step(1, true), thought, text("b"), step(2)]).shown).toEqual([text("ab"), null, thought, null, step(2)]);
  expect(joinContinued([text("a"), step(1, true), call, text("b"), step(2)]).shown).toEqual([text("a"), null, call, text("b"), step(2)]);
});

test("other steps stay as they are", () => {
  const parts = [text("a"), step(1), text("b"), step(2)];
  expect(joinContinued(parts)).toEqual({ shown: parts, into: -1 });
});
