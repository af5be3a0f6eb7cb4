// @vitest-environment happy-dom
/** The status of a turn whose model request is retried. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { emptySession, type SessionFollower } from "@everturn/client";
import { apply } from "../../client/src/fold";
import type { LogEvent } from "@everturn/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TurnFooter } from "../../src/conversation/turnFooter";

let root: HTMLElement;
beforeEach(() => {
  vi.useFakeTimers({ now: 8_000 });
  root = document.body.appendChild(document.createElement("div"));
});
afterEach(() => {
  render(null, root);
  root.remove();
  vi.useRealTimers();
});

const problem = { kind: "rate", text: "too many requests\u0007" };
const begun: LogEvent[] = [
  { type: "TurnStarted", turn: "t", at: 1, input: { id: "u", parent: null, role: "user", turn: "t" } },
  { type: "AnswerStarted", turn: "t", message: { id: "a", parent: "u", role: "assistant", by: "first", turn: "t" } },
  { type: "StepStarted", turn: "t", at: 1, step: 1 },
];

function status(...events: LogEvent[]): string {
  const state = emptySession();
  [...begun, ...events].forEach((event, index) => apply(state, index + 1, event, () => {}));
  const session = { id: "s", state, subscribe: () => () => {} } as unknown as SessionFollower;
  act(() => render(<TurnFooter session={session} id="t" />, root));
  return root.querySelector("[role=status]")!.textContent;
}

it("says how long a retry still waits, which attempt follows, and why", () => {
  const retried: LogEvent = { type: "RequestRetried", turn: "t", at: 6, step: 1, attempt: 2, attempts: 5, seconds: 12, problem };
  expect(status(retried)).toContain("Retrying in 10 s (attempt 2 of 5): too many requests");
  expect(root.textContent).not.toContain("\u0007");
  act(() => void vi.advanceTimersByTime(22_000));
  expect(root.textContent).toContain("Retrying (attempt 2 of 5)");
});

it("names another model that is asked instead", () => {
  expect(status({ type: "RequestRetried", turn: "t", at: 6, step: 1, attempt: 2, attempts: 2, problem, model: "second" })).toContain("Asking second instead: too many");
});
