// @vitest-environment happy-dom
import { render, type ComponentChild } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ErrorBoundary, errorDetails } from "../../src/app/errorBoundary";

let root: HTMLElement;
const draw = (node: ComponentChild) => act(() => render(node, root));
function Fragile({ breaks }: { breaks: boolean }) {
  if (breaks) throw new Error("no such colour");
  return <p>whole</p>;
}

beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  vi.spyOn(console, "error").mockImplementation(() => {});
});
afterEach(() => {
  render(null, root);
  root.remove();
  vi.restoreAllMocks();
});

it("shows a broken part as broken, and the rest lives", async () => {
  await draw(<main><ErrorBoundary name="card"><Fragile breaks /></ErrorBoundary><ErrorBoundary name="other"><Fragile breaks={false} /></ErrorBoundary></main>);
  expect(root.querySelector("[role=alert]")?.textContent).toContain("went wrong here");
  expect(root.querySelector("p")?.textContent).toBe("whole");
});

it("draws it anew when it is about something else", async () => {
  await draw(<ErrorBoundary name="card" resetKey="a"><Fragile breaks /></ErrorBoundary>);
  await draw(<ErrorBoundary name="card" resetKey="a"><Fragile breaks={false} /></ErrorBoundary>);
  expect(root.querySelector("[role=alert]")).not.toBeNull();
  await draw(<ErrorBoundary name="card" resetKey="b"><Fragile breaks={false} /></ErrorBoundary>);
  expect(root.textContent).toBe("whole");
});

it("draws it anew when somebody asks for that", async () => {
  await draw(<ErrorBoundary name="card"><Fragile breaks /></ErrorBoundary>);
  await draw(<ErrorBoundary name="card"><Fragile breaks={false} /></ErrorBoundary>);
  await act(() => root.querySelector("button")!.click());
  expect(root.textContent).toBe("whole");
});

it("has details that name the part and the fault", () => {
  expect(errorDetails("card", new TypeError("x is not y"))).toMatch(/^card: TypeError: x is not y\n/);
});
