// @vitest-environment happy-dom
// Attacks on a gate: make more, less or something else run than the person has read.
import { render } from "preact";
import { useState } from "preact/hooks";
import { act } from "preact/test-utils";
import { beforeEach, expect, it } from "vitest";
import { isDeceptive } from "../../src/conversation/links";
import { showInvisible } from "../../src/conversation/textEscapes";
import { VisibleText } from "../../src/gates/visibleText";
import { SchemaForm } from "../../src/gates/schemaForm";
import { isMixedDirection } from "../../src/gates/invisibleChars";
import { REDACTED, redactedText, redactAll, unredacted } from "../../src/gates/redaction";
import { INVALID_JSON, validate, fieldOf, type Schema } from "../../src/gates/schema";

let root: HTMLElement;
let formValue: unknown;
let setFormValue: (value: unknown) => void;

beforeEach(() => {
  document.body.replaceChildren((root = document.createElement("div")));
});

function FormHarness({ schema, first }: { schema: Schema | null; first: unknown }) {
  const [value, setValue] = useState(first);
  formValue = value;
  setFormValue = setValue;
  return <SchemaForm schema={schema} value={value} onChange={setValue} errors={[]} />;
}

const fill = (schema: Schema | null, first: unknown) => act(() => render(<FormHarness schema={schema} first={first} />, root));
const box = (label: string) => root.querySelector<HTMLTextAreaElement>(`[aria-label="${label}"]`)!;
const type = (into: HTMLTextAreaElement | HTMLInputElement, text: string) =>
  act(() => {
    into.value = text;
    into.dispatchEvent(new Event("input", { bubbles: true }));
  });

const OPEN = { type: "object", properties: { to: { type: "string" }, how: {} }, required: ["to"] };

it("an argument that is no JSON for a moment is neither dropped nor sent", () => {
  fill(OPEN, { to: "ann", how: { a: 1 }, more: { b: 2 } });
  type(box("more"), '{"b": ');
  expect(Object.keys(formValue as object)).toEqual(["to", "how", "more"]);
  expect(validate(fieldOf(OPEN), formValue).map((error) => error.path)).toEqual(["more"]);
  expect(box("more").value).toBe('{"b": '); // what was typed stays
  type(box("more"), '{"b": 3}');
  expect(formValue).toEqual({ to: "ann", how: { a: 1 }, more: { b: 3 } });
  expect(validate(fieldOf(OPEN), formValue)).toEqual([]);
});

it.each(['{"amount": 9007199254740993}', '{"amount": 1, "amount": 1000}', '{"amount": 0.1234567890123456789}', "{"])("what would be read as something else is not taken: %s", (text) => {
  fill(null, { amount: 1 });
  type(box("JSON"), text);
  expect(formValue).toBe(INVALID_JSON);
});

it("what is put back is what is shown", () => {
  const first = { amount: 1 };
  fill(null, first);
  type(box("JSON"), '{"amount": 1000}');
  act(() => setFormValue(first));
  expect(box("JSON").value).toBe(JSON.stringify(first, null, 2));
});

it.each<[string, unknown]>([["16", 16], ["1.5", 1.5], ["0x10", "0x10"], ["9007199254740993", "9007199254740993"], ["1_0", "1_0"], ["Infinity", "Infinity"]])("a number is what JSON calls one: %s", (text, value) => {
  const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  fill(schema, { n: 1 });
  type(root.querySelector("input")!, text);
  expect((formValue as { n: unknown }).n).toBe(value);
  expect(validate(fieldOf(schema), formValue).length).toBe(typeof value === "number" ? 0 : 1);
});

it.each(["constructor", "toString", "__proto__", "hasOwnProperty"])("an argument may be called %s", (name) => {
  const schema = JSON.parse(`{"type": "object", "properties": {"${name}": {"type": "string"}}, "required": ["${name}"]}`) as Schema;
  expect(validate(fieldOf(schema), {}).map(({ reason }) => reason)).toEqual(["missing"]);
  fill(schema, {});
  expect(root.querySelector("textarea")!.value).toBe("");
  type(root.querySelector("textarea")!, "x");
  expect(JSON.stringify(formValue)).toBe(`{"${name}":"x"}`);
});

it("a million characters that nobody sees do not stop the page, and are all written out", () => {
  const text = "\u200b".repeat(10_000);
  act(() => render(<pre><VisibleText text={text} /></pre>, root));
  expect(root.querySelectorAll("span").length).toBeLessThan(5000);
  expect(root.textContent!.match(/U\+200B/g)!.length).toBe(10_000);
  const last = [...root.querySelectorAll<HTMLElement>("[data-at]")].at(-1)!;
  expect(Number(last.dataset["at"]) + Number(last.dataset["size"])).toBe(text.length);
});

it("letters that run leftward beside a command are told of", () => {
  expect(isMixedDirection("rm \u05d0 /etc")).toBe(true);
  expect([isMixedDirection("rm /etc"), isMixedDirection("\u05e9\u05dc\u05d5\u05dd"), isMixedDirection("\u4f60\u597d rm")]).toEqual([false, false, false]);
});

const EVIL = new URL("https://evil.example/");
it("a link says where it leads when its text names another place, wherever in it", () => {
  expect(["paypal.com", "evil.example or paypal.com", "(https://www.paypal.com/x)", `${"a".repeat(300)}.paypal.com`].map((text) => isDeceptive(text, EVIL))).toEqual([true, true, true, true]);
  expect(["evil.example", "https://www.evil.example/a", "click here"].map((text) => isDeceptive(text, EVIL))).toEqual([false, false, false]);
});

it.each(["a", "a.", "a-", "a.1"])("the text of a link is looked at in no time: %s", (piece) => {
  const began = performance.now();
  isDeceptive(piece.repeat(50_000), EVIL);
  expect(performance.now() - began).toBeLessThan(1500);
});

it("what is copied with code is seen in it", () => {
  expect(showInvisible("a\u202eb\u200b\u{e0041}\u001b[1m")).toBe("a⟨U+202E⟩b⟨U+200B⟩⟨U+E0041⟩\u241b[1m");
  expect(showInvisible("const a = 'é 你好';\n\t")).toBe("const a = 'é 你好';\n\t");
});

it("of a text that overlaps itself nothing is left", () => expect(redactedText(redactAll(unredacted("x aaa y"), "aa"))).toBe(`x ${REDACTED} y`));
