// @vitest-environment happy-dom
// Saved prompts: what is typed after a slash finds them, and picking one inserts its text with the arguments filled in.
import type { PromptView } from "@everturn/client";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it, vi } from "vitest";
import { client } from "../../src/app/app";
import { expandPrompt, matchPrompts, missingArguments } from "../../src/conversation/expandPrompt";
import { PromptPicker } from "../../src/conversation/promptPicker";
import { Instructions } from "../../src/pages/instructions";

const prompt = (name: string, text: string, more: Partial<PromptView> = {}): PromptView => ({ name, text, description: "", arguments: [], scope: "user", ...more });
const review = prompt("review", "Review {{branch}} against {{ base }}, {{other}}.", { description: "Look at a branch", arguments: [{ name: "branch" }, { name: "base", default: "main" }] });
const plan = prompt("plan", "Make a plan.");

afterEach(() => vi.restoreAllMocks());

it("fills arguments and defaults in, and a value is no template", () => {
  expect(expandPrompt(review, { branch: "{{base}}" })).toBe("Review {{base}} against main, {{other}}.");
  expect(missingArguments(review, {})).toEqual(["branch"]);
  expect(missingArguments(review, { branch: "x" })).toEqual([]);
});

it("finds prompts by the beginning of their name first, then by what they are for", () => {
  expect(matchPrompts([plan, review], "/").map(({ name }) => name)).toEqual(["plan", "review"]);
  expect(matchPrompts([plan, review], "/rev").map(({ name }) => name)).toEqual(["review"]);
  expect(matchPrompts([plan, review], "/branch").map(({ name }) => name)).toEqual(["review"]);
});

const draw = async (node: preact.JSX.Element): Promise<HTMLElement> => {
  const root = document.body.appendChild(document.createElement("div"));
  await act(async () => render(node, root));
  await act(async () => {});
  return root;
};
const button = (root: HTMLElement, text: string) => [...root.querySelectorAll("button")].find((one) => one.textContent!.includes(text))!;

it("inserts a prompt at once, and one with arguments after they are given", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ prompts: [plan, review] });
  const picked: string[] = [];
  const root = await draw(<PromptPicker typed="/" onPick={(text) => picked.push(text)} />);
  act(() => button(root, "/plan").click());
  expect(picked).toEqual(["Make a plan."]);
  act(() => button(root, "/review").click());
  expect(button(root, "Insert").disabled).toBe(true);
  const field = root.querySelector("input")!;
  field.value = "fix";
  act(() => void field.dispatchEvent(new Event("input", { bubbles: true })));
  act(() => button(root, "Insert").click());
  expect(picked[1]).toBe("Review fix against main, {{other}}.");
});

it("shows the layers in their order, and not the texts of the configuration", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ layers: [{ layer: "agent", text: "", size: 1200 }, { layer: "session", text: "In <b>French</b>.", size: 17 }] });
  const root = await draw(<Instructions session="s" />);
  const shown = root.textContent!;
  expect(shown.indexOf("Agent")).toBeLessThan(shown.indexOf("This conversation"));
  expect(shown).toContain("1,200 bytes from the configuration");
  expect(shown).toContain("In <b>French</b>.");
  expect(root.querySelector("b")).toBeNull();
});

it("draws nothing where a command of the composer matches and no prompt does", async () => {
  vi.spyOn(client, "get").mockResolvedValue({ prompts: [plan] });
  const root = await draw(<PromptPicker typed="/com" isCommand onPick={() => {}} />);
  expect(root.textContent).toBe("");
  const other = await draw(<PromptPicker typed="/com" onPick={() => {}} />);
  expect(other.textContent).toContain("No saved prompt matches.");
});
