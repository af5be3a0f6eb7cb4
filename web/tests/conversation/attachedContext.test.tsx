// @vitest-environment happy-dom
// Attached context is drawn as what it is: its kind, its title, and its text as plain text.
import type { ContextPart } from "@everturn/client";
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { AttachedContext } from "../../src/conversation/notice";

const draw = (part: ContextPart) => {
  const root = document.createElement("div");
  act(() => render(<AttachedContext part={part} />, root));
  return root;
};

it("a page shows its title, and its text is no markup", () => {
  const root = draw({ type: "context", kind: "page", title: "Lo\u001bcks", source: "javascript:alert(1)", text: "<b>old</b>" });
  expect(root.textContent).toContain("Page");
  expect(root.textContent).not.toContain("old"); // until it is unfolded
  act(() => root.querySelector<HTMLElement>("button, summary")!.click());
  expect(root.textContent).toContain("<b>old</b>");
  expect(root.textContent).not.toContain("\u001b");
  expect(root.querySelector("b, a")).toBeNull();
});

it("a kind of one's own is shown by its name", () => {
  expect(draw({ type: "context", kind: "ticket", source: "T-1", text: "x" }).textContent).toContain("ticket");
});
