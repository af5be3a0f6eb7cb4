import { expect, test } from "vitest";
import { isExact, members, pretty } from "../../src/gates/json";
import { actionOf, isTypingIn, stepTo, type GateAction, type Pressed } from "../../src/gates/keys";
import { MARK, left, places, redact, redactAll, restore, stretches, undo, whole } from "../../src/gates/redaction";
import { sayRule } from "../../src/gates/rule";
import { check, fieldOf, initial } from "../../src/gates/schema";
import { STILL, Stillness } from "../../src/gates/steady";
import { fresh, titleOf } from "../../src/gates/badge-model";
import type { GateView } from "@everturn/client";

// JSON, as it was written ----------------------------------------------------------------------------------------------

test.each(['{"a":1}', '{"a":12345678901234567890,"b":[1.0,2e5,{}],"c":[],"d":{"e":"x, y: {z}"}}', "[]", '"\\u202e"', '{"a":"\\"}"}', '{"a":1,"a":2}'])("pretty keeps every token of %s", (text) => {
  const squeezed = (some: string) => some.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
  expect(squeezed(pretty(text)!)).toBe(squeezed(text));
});

test("what is no JSON is not laid out", () => expect([pretty("{a"), members("[1]"), members("x")]).toEqual([null, null, null]));

test("members are as they were written, doubles too", () => {
  expect(members('{"a": 1.0, "b": {"c": [1, {"d": "}"}]}, "a": "x,y", "e": {}, "f": []}')).toEqual([["a", "1.0"], ["b", '{"c":[1,{"d":"}"}]}'], ["a", '"x,y"'], ["e", "{}"], ["f", "[]"]]);
  expect(members("{}")).toEqual([]);
});

test.each<[string, boolean]>([['{"a":1}', true], ['{"a":9007199254740993}', false], ['{"a":1,"a":2}', false], ['{"a":{"b":1},"c":{"b":2}}', true], ['{"a":0.1}', true], ['{"a":3.14159265358979323846}', false], ['{"a":1e400}', false], ['["9007199254740993"]', true]])(
  "%s can be sent back unchanged: %s", (text, is) => expect(isExact(text)).toBe(is));

// Keys -----------------------------------------------------------------------------------------------------------------

const ALL = new Set<GateAction>(["once", "always", "deny", "edit"]);
const key = (name: string, more: Partial<Pressed> = {}): Pressed => ({ key: name, ctrlKey: false, altKey: false, metaKey: false, repeat: false, isComposing: false, ...more });

test.each<[string, GateAction]>([["y", "once"], ["a", "always"], ["n", "deny"], ["e", "edit"]])("%s", (name, action) => expect(actionOf(key(name), false, ALL)).toBe(action));
test.each<Partial<Pressed>>([{ ctrlKey: true }, { altKey: true }, { metaKey: true }, { shiftKey: true }, { repeat: true }, { isComposing: true }, { defaultPrevented: true }])("not with %j", (more) => {
  for (const name of "yane") expect(actionOf(key(name, more), false, ALL)).toBeNull();
});
test("not while typing, not where it is not offered, and no other key", () => {
  expect(actionOf(key("y"), true, ALL)).toBeNull();
  expect(actionOf(key("a"), false, new Set<GateAction>(["once", "deny"]))).toBeNull();
  for (const name of ["Enter", " ", "Y", "x", "Escape", "constructor"]) expect(actionOf(key(name), false, ALL)).toBeNull();
});
test("fields take letters, buttons do not", () => {
  const at = (tagName: string, type = "") => ({ tagName, type }) as unknown as EventTarget;
  expect([at("TEXTAREA"), at("INPUT", "text"), at("SELECT")].map(isTypingIn)).toEqual([true, true, true]);
  expect([at("BUTTON"), at("INPUT", "checkbox"), at("SECTION"), null].map(isTypingIn)).toEqual([false, false, false, false]);
});
test("j and k stay within the list", () => expect([stepTo("j", -1, 2), stepTo("j", 1, 2), stepTo("k", 0, 2), stepTo("k", 1, 2), stepTo("x", 0, 2), stepTo("j", 0, 0)]).toEqual([0, 1, 0, 0, null, null]));

// Redaction ------------------------------------------------------------------------------------------------------------

const TEXT = "name Ada, key 12345, again 12345";
test("what is taken out is gone, and says so", () => {
  const made = redact(whole(TEXT), 14, 19);
  expect(left(made)).toBe(`name Ada, key ${MARK}, again 12345`);
  expect(stretches(made).map((one) => one.text).join("")).toBe(TEXT);
  expect(left(undo(made))).toBe(TEXT);
});
test("all that reads the same", () => {
  const made = redactAll(redact(whole(TEXT), 14, 19), "12345");
  expect(left(made)).not.toContain("12345");
  expect(made.cuts).toHaveLength(2);
  expect(redactAll(made, "12345")).toBe(made);
  expect(places(made, "12345")).toEqual([]);
  expect(left(restore(made, 0))).toBe(`name Ada, key 12345, again ${MARK}`);
  expect(undo(restore(made, 0))).toBe(made);
});
test("cuts that touch become one, in any order, backwards too", () => {
  const made = redact(redact(redact(whole("abcdefgh"), 6, 4), 0, 2), 2, 4);
  expect(made.cuts).toEqual([{ from: 0, to: 6 }]);
  expect(left(made)).toBe(`${MARK}gh`);
  expect(redact(made, 1, 3)).toBe(made);
});
test("no half of a character is left", () => {
  for (const [from, to] of [[1, 2], [2, 3], [1, 3]] as const) expect(left(redact(whole("a😀b"), from, to))).toBe(`a${MARK}b`);
  expect(left(redact(whole("abc"), -5, 99))).toBe(MARK);
  expect(redact(whole("abc"), 1, 1).cuts).toEqual([]);
});
test("whatever is done, nothing that was cut is left", () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: 40 }, () => "ab😀\n"[random(5)] ?? "x").join("");
    let made = whole(text);
    const gone = new Set<number>();
    for (let turn = 0; turn < 5; turn++) {
      const [from, to] = [random(45), random(45)];
      made = redact(made, from, to);
      for (let at = Math.min(from, to); at < Math.min(Math.max(from, to), text.length); at++) gone.add(at);
    }
    for (const one of stretches(made)) if (!one.isCut) for (let at = 0; at < one.text.length; at++) expect(gone.has(one.at + at)).toBe(false);
    expect(stretches(made).map((one) => one.text).join("")).toBe(text);
  }
});

// Forms ----------------------------------------------------------------------------------------------------------------

const SCHEMA = {
  type: "object", required: ["to", "count"], additionalProperties: false, $defs: { Mood: { enum: ["calm", "loud"] } },
  properties: {
    to: { type: "string", minLength: 3, pattern: "@" }, count: { type: "integer", minimum: 1, maximum: 9 }, loud: { type: "boolean", default: true }, mood: { $ref: "#/$defs/Mood" },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 }, at: { anyOf: [{ type: "number" }, { type: "null" }] }, deep: { type: "object", properties: { x: { type: ["integer", "null"] } } },
    any: {}, both: { anyOf: [{ type: "string" }, { type: "integer" }] }, pick: { oneOf: [{ const: 1, title: "One" }, { const: 2 }] }, alias: { allOf: [{ $ref: "#/$defs/Mood" }], description: "d" }, map: { type: "object", additionalProperties: { type: "string" } },
  },
};
const FIELD = fieldOf(SCHEMA);
const kinds = Object.fromEntries(FIELD.fields.map(({ name, field }) => [name, field.kind]));

test("each kind of field", () => {
  expect(kinds).toEqual({ to: "text", count: "integer", loud: "boolean", mood: "choice", tags: "list", at: "number", deep: "object", any: "json", both: "json", pick: "choice", alias: "choice", map: "json" });
  const of = (name: string) => FIELD.fields.find((one) => one.name === name)!.field;
  expect(of("at").isNullable).toBe(true);
  expect(of("deep").fields[0]!.field).toMatchObject({ kind: "integer", isNullable: true });
  expect(of("pick").options.map((option) => option.label)).toEqual(["One", "2"]);
  expect(of("alias").about).toBe("d");
});
test("what a form begins with", () => expect(initial(FIELD)).toEqual({ to: "", loud: true }));
test.each<[object, string[]]>([
  [{ to: "a@b", count: 3 }, []], [{ to: "a@b" }, ["count missing"]], [{ to: "ab", count: 3 }, ["to short"]], [{ to: "abc", count: 3 }, ["to pattern"]], [{ to: 1, count: 3 }, ["to type"]],
  [{ to: "a@b", count: 0 }, ["count least"]], [{ to: "a@b", count: 10 }, ["count most"]], [{ to: "a@b", count: 1.5 }, ["count integer"]], [{ to: "a@b", count: "3" }, ["count type"]],
  [{ to: "a@b", count: 3, tags: ["a", 1] }, ["tags.1 type"]], [{ to: "a@b", count: 3, tags: ["a", "b", "c"] }, ["tags many"]], [{ to: "a@b", count: 3, at: null }, []], [{ to: "a@b", count: 3, at: "x" }, ["at type"]],
  [{ to: "a@b", count: 3, mood: "sad" }, ["mood choice"]], [{ to: "a@b", count: 3, deep: { x: "y" } }, ["deep.x type"]], [{ to: "a@b", count: 3, nope: 1 }, ["nope extra"]], [{ to: "a@b", count: 3, any: { x: [1] }, both: "x" }, []], [{ to: "a@b", count: 3, pick: 2, loud: 1 }, ["loud type"]],
])("%j", (value, wrong) => expect(check(FIELD, value).map((one) => `${one.path} ${one.why}`)).toEqual(wrong));
test("schemas that make no sense are JSON, and end", () => {
  const round = { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } };
  for (const schema of [null, 1, [], {}, { type: "weird" }, { $ref: "#/nowhere" }, { $ref: "http://x" }, round]) expect(fieldOf(schema).kind).toBe("json");
  const self: Record<string, unknown> = { type: "object", properties: { me: { $ref: "#" } } };
  expect(fieldOf(self).kind).toBe("object");
  expect(fieldOf({ type: "object", properties: { x: { type: "string", pattern: "(" } } }).kind).toBe("object");
});

// Standing still, and the title ----------------------------------------------------------------------------------------

test("what has just come, or moved, is not to be pressed", () => {
  const still = new Stillness(0);
  still.see({ x: 0, y: 0 }, 0);
  expect(still.isSteady(STILL - 1)).toBe(false);
  expect(still.isSteady(STILL)).toBe(true);
  still.see({ x: 0, y: 2 }, 500);
  expect(still.isSteady(500)).toBe(true);
  still.see({ x: 0, y: 40 }, 600);
  expect(still.isSteady(600 + STILL - 1)).toBe(false);
  still.see({ x: 0, y: 40 }, 900);
  expect(still.isSteady(1000)).toBe(true);
  still.see({ x: 0, y: 90 }, 1100, true);
  expect(still.isSteady(1100)).toBe(true);
  still.again(1200);
  expect(still.isSteady(1201)).toBe(false);
});
test("the title counts", () => expect([titleOf(0, ""), titleOf(3, "Mail"), titleOf(1, "")]).toEqual(["Everturn", "(3) Everturn · Mail", "(1) Everturn"]));
test("each question is news once, and what is for programs never", () => {
  const view = (id: string, kind = "call") => ({ gate: { id, kind } }) as unknown as GateView;
  const known = new Set<string>();
  expect(fresh([view("a"), view("b", "client")], known).map((one) => one.gate.id)).toEqual(["a"]);
  expect(fresh([view("a"), view("c")], known).map((one) => one.gate.id)).toEqual(["c"]);
});
test("a rule reads as it is configured, with nothing hidden in it", () => {
  expect(sayRule({ tool: "shell", action: "allow", match: { command: 'git "x" *' } })).toBe('{tool = "shell", match = {command = "git \\"x\\" *"}, action = "allow"}');
  expect(sayRule({ tool: "a\u202e", action: "allow" })).toBe('{tool = "a⟨U+202E⟩", action = "allow"}');
});
