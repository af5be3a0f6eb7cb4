// @vitest-environment happy-dom
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import type { Part } from "@everturn/client";
import { toMarkdown } from "../../src/conversation/exportText";
import { joinContinued } from "../../src/conversation/message";
import { CitedText, ProviderTool, numberSources } from "../../src/conversation/providerTool";

const citation = (start: number, end: number, source: string, title = "") => ({ start, end, source, title });

test("a call and its result are one, and so are texts side by side", () => {
  const parts: Part[] = [
    { type: "provider_tool", name: "web_search", state: "called", id: "s1", title: "turtles" },
    { type: "provider_tool", name: "web_search", state: "completed", id: "s1", text: "found" },
    { type: "text", text: "🐢 " },
    { type: "text", text: "live long", citations: [citation(0, 9, "https://example.com/a")] },
  ];
  const { shown } = joinContinued(parts);
  expect(shown[0]).toMatchObject({ state: "completed", title: "turtles", text: "found" });
  expect(shown[1]).toBeNull();
  expect(shown[2]).toMatchObject({ text: "🐢 live long", citations: [{ start: 2, end: 11 }] });
  expect(shown[3]).toBeNull();
});

test("sources are numbered, each once, behind what they are for", () => {
  const [a, b] = ["https://example.com/a", "https://example.com/b"];
  const { text, sources } = numberSources({ type: "text", text: "🐢 one two", citations: [citation(0, 5, a), citation(5, 9, b), citation(5, 9, a)] });
  expect(text).toBe("🐢 one[1] two[2][1]");
  expect(sources.map(({ source }) => source)).toEqual([a, b]);
});

test("a source that is no web address is not a link, and no text is markup", () => {
  const root = document.createElement("div");
  act(() => render(<CitedText part={{ type: "text", text: "So.", citations: [citation(0, 3, "javascript:alert(1)", "<b>x</b>"), citation(0, 3, "https://example.com/a")] }} />, root));
  expect([...root.querySelectorAll("ol a")].map((link) => link.getAttribute("href"))).toEqual(["https://example.com/a"]);
  expect(root.querySelector("ol b")).toBeNull();
});

test("a tool of the provider shows its name, what it was asked, and its state", () => {
  const root = document.createElement("div");
  act(() => render(<ProviderTool part={{ type: "provider_tool", name: "web_search", state: "failed", title: "turtles", text: "max_uses_exceeded" }} />, root));
  expect(root.textContent).toContain("web_search");
  expect(root.textContent).toContain("turtles");
  expect(root.textContent).toContain("failed at the provider");
});

test("an exported answer has its sources", () => {
  const part: Part = { type: "text", text: "🐢 one two", citations: [citation(0, 5, "https://example.com/a", "All\nabout turtles")] };
  const text = toMarkdown("x", [{ id: "m", role: "assistant", parts: [part] } as never]);
  expect(text).toContain("🐢 one[1] two\n\n[1] All about turtles https://example.com/a\n");
});
