// @vitest-environment happy-dom
// What a denial is called: a call is denied; the result of a call that has run is withheld.
import type { Gate } from "@everturn/client";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { DenyPanel } from "../../src/gates/answerPanels";
import type { GateAnswer } from "../../src/gates/useAnswer";

it.each([
  ["permission", ["Deny", "Deny and stop"]],
  ["result", ["Withhold", "Withhold and stop"]],
])("a gate of the kind %s is answered with %j", (kind, names) => {
  const root = document.createElement("div");
  const sent: GateAnswer[] = [];
  const gate = { id: "g", turn: "t", call: "c", tool: "look", arguments: "{}", hash: "h", kind } as unknown as Gate;
  act(() => render(<DenyPanel gate={gate} isReady onSend={(answer) => sent.push(answer)} onBack={() => undefined} />, root));
  const buttons = [...root.querySelectorAll("button")];
  expect(buttons.slice(0, 2).map((button) => button.textContent?.trim())).toEqual(names);
  for (const button of buttons.slice(0, 2)) act(() => button.click());
  expect(sent.map((answer) => "stop" in answer && answer.stop)).toEqual([false, true]);
});
