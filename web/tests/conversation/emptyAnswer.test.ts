// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Part } from "@everturn/client";
import { ServerError } from "@everturn/client";
import { errorMessage } from "../../src/app/app";
import { isEmptyAnswer } from "../../src/conversation/message";

const step = (finish: string): Part => ({ type: "step", step: 1, finish }) as Part;
const text = (text: string): Part => ({ type: "text", text });
const tool: Part = { type: "tool", call: "c", name: "look", arguments: "{}" };

test("an answer is empty when its last step ended by itself and has no text, call or file", () => {
  expect(isEmptyAnswer([step("stop")])).toBe(true);
  expect(isEmptyAnswer([text(" \n"), step("stop")])).toBe(true);
  expect(isEmptyAnswer([{ type: "reasoning", text: "Hm." }, step("stop")])).toBe(true);
  expect(isEmptyAnswer([text("I look."), tool, step("tool_calls"), step("stop")])).toBe(true);
});

test("an answer that says something, was cut off or goes on is not", () => {
  expect(isEmptyAnswer([])).toBe(false);
  expect(isEmptyAnswer([text("Hi."), step("stop")])).toBe(false);
  expect(isEmptyAnswer([tool, step("tool_calls")])).toBe(false);
  expect(isEmptyAnswer([{ type: "file", blob: "b", media_type: "image/png", size: 1 }, step("stop")])).toBe(false);
  expect(isEmptyAnswer([step("error")])).toBe(false);
  expect(isEmptyAnswer([step("refusal")])).toBe(false);
});

test("what a server says to a program is not said to a person", () => {
  expect(errorMessage(new ServerError(401, "not_recognised", "show who you are: Authorization: Bearer <key>"))).toMatch(/not logged in/);
  expect(errorMessage(new ServerError(422, "unfit", "too long"))).toBe("too long");
  expect(errorMessage(new TypeError("Failed to fetch"))).toMatch(/could not be reached/);
});
