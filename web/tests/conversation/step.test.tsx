// @vitest-environment happy-dom
/** The line under an answer: one for all its steps, with a line for each inside. */
import { render } from "preact";
import type { Message, Part, SessionFollower, TurnState } from "@everturn/client";
import { afterEach, expect, it, vi } from "vitest";
import { client } from "../../src/app/app";
import { AnswerUsage, CopiedSteps } from "../../src/conversation/step";

const step = (number: number, input: number, output: number, cost: number) => ({ type: "step", step: number, finish: "stop", usage: { input, output, cost } }) as unknown as Part;
const turn = { steps: [{ number: 1, started: 10, ended: 12 }, { number: 2, started: 20, ended: 21 }] } as unknown as TurnState;
const draw = (...parts: Part[]) => render(<AnswerUsage parts={parts} turn={turn} by="m" />, document.body);
const texts = (selector: string) => [...document.querySelectorAll(selector)].map((node) => [...node.children].map((child) => child.textContent).filter(Boolean));

afterEach(() => render(null, document.body));

it("adds up the steps, and opens to a line for each", () => {
  draw(step(1, 1000, 20, 0.01), { type: "text", text: "x" } as Part, step(2, 2000, 30, 0.02));
  expect(texts("summary")).toEqual([["2 steps", "3,000 in", "50 out", "$0.03", "3.0 s"]]);
  expect(texts("details > p")).toEqual([["Step 1", "1,000 in", "20 out", "$0.01", "2.0 s"], ["Step 2", "2,000 in", "30 out", "$0.02", "1.0 s"]]);
});

it("is one line for one step, and nothing before the first has ended", () => {
  draw(step(1, 1000, 20, 0.01));
  expect([texts("details"), texts("p.step-line")]).toEqual([[], [["1,000 in", "20 out", "$0.01", "2.0 s"]]]);
  draw({ type: "text", text: "x" } as Part);
  expect(document.body.textContent).toBe("");
});

it("continues after a finished step but the last: the model at once, or the next message", () => {
  const parts = [step(1, 1, 1, 0), { ...step(2, 1, 1, 0), continues: true }, step(3, 1, 1, 0), { ...step(4, 1, 1, 0), finish: "cancelled" }, step(5, 1, 1, 0)] as Part[];
  const fork = { session: { id: "s" } as SessionFollower, message: { id: "m" } as Message };
  const rerun = vi.spyOn(client, "rerun").mockResolvedValue({} as never);
  const continueAfter = vi.spyOn(client, "fork").mockResolvedValue({ message: "copy" } as never);
  render(<AnswerUsage parts={parts} turn={turn} by="m" fork={fork} />, document.body);
  const buttons = [...document.querySelectorAll("details button")] as HTMLButtonElement[];
  expect(buttons.map((button) => button.getAttribute("aria-label"))).toEqual([
    "Regenerate after step 1", "Continue after step 1", "Regenerate after step 3", "Continue after step 3",
  ]);
  buttons[0]!.click();
  expect(rerun).toHaveBeenLastCalledWith("s", "m", { after_step: 1, at_step_limit: "ask" });
  buttons[3]!.click();
  expect(continueAfter).toHaveBeenLastCalledWith("s", "m", 3);
  vi.restoreAllMocks();
});

it("offers nothing to a person who may only read, and says of a copy what it is", () => {
  const parts = [step(1, 1, 1, 0), step(2, 1, 1, 0)];
  draw(...parts);
  expect(document.querySelectorAll("button")).toHaveLength(0);
  render(<CopiedSteps parts={parts} />, document.body);
  expect(document.body.textContent).toBe("The first 2 steps of another version; they were not run again.");
});
