// @vitest-environment happy-dom
/** Model picker: search by name, vendor and capability, keys, prices and what is not known. */
import type { ModelView } from "@everturn/client";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agents } from "../../src/app/app";
import { language } from "../../src/app/texts";
import { ModelPicker } from "../../src/pages/modelPicker";
import { describeModels, searchModels } from "../../src/pages/modelSearch";

const model = (name: string, more: Partial<ModelView> = {}): ModelView => ({ name, badge: name, context: 0, vendor: "", input_price: null, output_price: null, inputs: null, has_native_tools: null, has_temperature: null, reasoning_levels: null, ...more });
const KNOWN = [
  model("opus", { vendor: "anthropic", context: 200_000, input_price: 5, output_price: 25, inputs: ["image", "pdf"], has_native_tools: true }),
  model("tiny", { vendor: "ollama", inputs: [], has_native_tools: false }),
];
const NAMES = ["opus", "tiny", "other"];

let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  agents.set({ agents: [], models: KNOWN });
});
afterEach(() => {
  render(null, root);
  root.remove();
  agents.set(null);
  language.set("en");
});

const draw = async () => {
  const picked: string[] = [];
  await act(async () => render(<ModelPicker names={NAMES} own="opus" current="tiny" onSelect={(name) => picked.push(name)} onClose={() => {}} />, root));
  return picked;
};
const type = (text: string) => act(async () => {
  const input = root.querySelector("input")!;
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
});
const press = (key: string) => act(async () => void root.querySelector("input")!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
const options = () => [...root.querySelectorAll('[role="option"]')].map((option) => option.textContent!);

it("says what is known of a model, and that a price is not known", async () => {
  await draw();
  expect(options()[0]).toBe("opusagent's ownimagesPDFtoolsanthropic200k context$5 in, $25 out");
  expect(options()[1]).toBe("tinytools by promptollamaprice unknown");
  expect(options()[2]).toBe("otherprice unknown");
});

it("starts at the current model, and is used by keys alone", async () => {
  const picked = await draw();
  expect(root.querySelector('[aria-selected="true"]')!.textContent).toContain("tiny");
  await press("ArrowDown");
  await press("ArrowDown"); // around the end
  await press("Enter");
  expect(picked).toEqual(["opus"]);
});

it("finds models by what they can do, in the language of the page", async () => {
  await draw();
  await type("pdf anthropic");
  expect(options()).toHaveLength(1);
  await act(async () => language.set("zh"));
  await type("图片");
  expect(options()[0]).toContain("opus");
  await type("nothing like it");
  expect(options()).toEqual([]);
  expect(root.textContent).toContain("无结果");
});

it("puts names that start with the text first, and keeps the order otherwise", () => {
  const all = describeModels(["gpt-mini", "mini", "minimal"], [], "");
  expect(searchModels(all, "mini", ({ name }) => name).map(({ name }) => name)).toEqual(["mini", "minimal", "gpt-mini"]);
  expect(searchModels(all, " ", ({ name }) => name)).toEqual(all);
});
