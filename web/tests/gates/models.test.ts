import { expect, test } from "vitest";
import { isExact, objectMembers, prettyJson } from "../../src/gates/json";
import { actionForKey, isTypingIn, nextIndex, type GateAction, type KeyPress } from "../../src/gates/keys";
import { REDACTED, redactedText, occurrences, redact, redactAll, restore, segments, undo, unredacted } from "../../src/gates/redaction";
import { formatRule } from "../../src/gates/ruleText";
import { validate, fieldOf, initialValue } from "../../src/gates/schema";
import { MIN_STILL_MS, ClickGuard } from "../../src/gates/clickGuard";
import { takeNewGates, documentTitle } from "../../src/gates/badgeModel";
import type { GateView } from "@everturn/client";

// JSON, as it was written ----------------------------------------------------------------------------------------------

test.each(['{"a":1}', '{"a":12345678901234567890,"b":[1.0,2e5,{}],"c":[],"d":{"e":"x, y: {z}"}}', "[]", '"\\u202e"', '{"a":"\\"}"}', '{"a":1,"a":2}'])("pretty keeps every token of %s", (text) => {
  const squeezed = (json: string) => json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
  expect(squeezed(prettyJson(text)!)).toBe(squeezed(text));
});

test("what is no JSON is not laid out", () => expect([prettyJson("{a"), objectMembers("[1]"), objectMembers("x")]).toEqual([null, null, null]));

test("members are as they were written, doubles too", () => {
  expect(objectMembers('{"a": 1.0, "b": {"c": [1, {"d": "}"}]}, "a": "x,y", "e": {}, "f": []}')).toEqual([["a", "1.0"], ["b", '{"c":[1,{"d":"}"}]}'], ["a", '"x,y"'], ["e", "{}"], ["f", "[]"]]);
  expect(objectMembers("{}")).toEqual([]);
});

test.each<[string, boolean]>([['{"a":1}', true], ['{"a":9007199254740993}', false], ['{"a":1,"a":2}', false], ['{"a":{"b":1},"c":{"b":2}}', true], ['{"a":0.1}', true], ['{"a":3.14159265358979323846}', false], ['{"a":1e400}', false], ['["9007199254740993"]', true]])(
  "%s can be sent back unchanged: %s", (text, is) => expect(isExact(text)).toBe(is));

// Keys -----------------------------------------------------------------------------------------------------------------

const ALL = new Set<GateAction>(["once", "always", "deny", "edit"]);
const key = (name: string, more: Partial<KeyPress> = {}): KeyPress => ({ key: name, ctrlKey: false, altKey: false, metaKey: false, repeat: false, isComposing: false, ...more });

test.each<[string, GateAction]>([["y", "once"], ["a", "always"], ["n", "deny"], ["e", "edit"]])("%s", (name, action) => expect(actionForKey(key(name), false, ALL)).toBe(action));
test.each<Partial<KeyPress>>([{ ctrlKey: true }, { altKey: true }, { metaKey: true }, { shiftKey: true }, { repeat: true }, { isComposing: true }, { defaultPrevented: true }])("not with %j", (more) => {
  for (const name of "yane") expect(actionForKey(key(name, more), false, ALL)).toBeNull();
});
test("not while typing, not where it is not offered, and no other key", () => {
  expect(actionForKey(key("y"), true, ALL)).toBeNull();
  expect(actionForKey(key("a"), false, new Set<GateAction>(["once", "deny"]))).toBeNull();
  for (const name of ["Enter", " ", "Y", "x", "Escape", "constructor"]) expect(actionForKey(key(name), false, ALL)).toBeNull();
});
test("fields take letters, buttons do not", () => {
  const target = (tagName: string, type = "") => ({ tagName, type }) as unknown as EventTarget;
  expect([target("TEXTAREA"), target("INPUT", "text"), target("SELECT")].map(isTypingIn)).toEqual([true, true, true]);
  expect([target("BUTTON"), target("INPUT", "checkbox"), target("SECTION"), null].map(isTypingIn)).toEqual([false, false, false, false]);
});
test("j and k stay within the list", () => expect([nextIndex("j", -1, 2), nextIndex("j", 1, 2), nextIndex("k", 0, 2), nextIndex("k", 1, 2), nextIndex("x", 0, 2), nextIndex("j", 0, 0)]).toEqual([0, 1, 0, 0, null, null]));

// Redaction ------------------------------------------------------------------------------------------------------------

const TEXT = "name Ada, key 12345, again 12345";
test("what is taken out is gone, and says so", () => {
  const redaction = redact(unredacted(TEXT), 14, 19);
  expect(redactedText(redaction)).toBe(`name Ada, key ${REDACTED}, again 12345`);
  expect(segments(redaction).map((segment) => segment.text).join("")).toBe(TEXT);
  expect(redactedText(undo(redaction))).toBe(TEXT);
});
test("all that reads the same", () => {
  const redaction = redactAll(redact(unredacted(TEXT), 14, 19), "12345");
  expect(redactedText(redaction)).not.toContain("12345");
  expect(redaction.cuts).toHaveLength(2);
  expect(redactAll(redaction, "12345")).toBe(redaction);
  expect(occurrences(redaction, "12345")).toEqual([]);
  expect(redactedText(restore(redaction, 0))).toBe(`name Ada, key 12345, again ${REDACTED}`);
  expect(undo(restore(redaction, 0))).toBe(redaction);
});
test("cuts that touch become one, in any order, backwards too", () => {
  const redaction = redact(redact(redact(unredacted("abcdefgh"), 6, 4), 0, 2), 2, 4);
  expect(redaction.cuts).toEqual([{ from: 0, to: 6 }]);
  expect(redactedText(redaction)).toBe(`${REDACTED}gh`);
  expect(redact(redaction, 1, 3)).toBe(redaction);
});
test("no half of a character is left", () => {
  for (const [from, to] of [[1, 2], [2, 3], [1, 3]] as const) expect(redactedText(redact(unredacted("a😀b"), from, to))).toBe(`a${REDACTED}b`);
  expect(redactedText(redact(unredacted("abc"), -5, 99))).toBe(REDACTED);
  expect(redact(unredacted("abc"), 1, 1).cuts).toEqual([]);
});
test("whatever is done, nothing that was cut is left", () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: 40 }, () => "ab😀\n"[random(5)] ?? "x").join("");
    let redaction = unredacted(text);
    const gone = new Set<number>();
    for (let turn = 0; turn < 5; turn++) {
      const [from, to] = [random(45), random(45)];
      redaction = redact(redaction, from, to);
      for (let at = Math.min(from, to); at < Math.min(Math.max(from, to), text.length); at++) gone.add(at);
    }
    for (const segment of segments(redaction)) if (!segment.isCut) for (let at = 0; at < segment.text.length; at++) expect(gone.has(segment.at + at)).toBe(false);
    expect(segments(redaction).map((segment) => segment.text).join("")).toBe(text);
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
  const of = (name: string) => FIELD.fields.find((member) => member.name === name)!.field;
  expect(of("at").isNullable).toBe(true);
  expect(of("deep").fields[0]!.field).toMatchObject({ kind: "integer", isNullable: true });
  expect(of("pick").options.map((option) => option.label)).toEqual(["One", "2"]);
  expect(of("alias").about).toBe("d");
});
test("what a form begins with", () => expect(initialValue(FIELD)).toEqual({ to: "", loud: true }));
test.each<[object, string[]]>([
  [{ to: "a@b", count: 3 }, []], [{ to: "a@b" }, ["count missing"]], [{ to: "ab", count: 3 }, ["to short"]], [{ to: "abc", count: 3 }, ["to pattern"]], [{ to: 1, count: 3 }, ["to type"]],
  [{ to: "a@b", count: 0 }, ["count least"]], [{ to: "a@b", count: 10 }, ["count most"]], [{ to: "a@b", count: 1.5 }, ["count integer"]], [{ to: "a@b", count: "3" }, ["count type"]],
  [{ to: "a@b", count: 3, tags: ["a", 1] }, ["tags.1 type"]], [{ to: "a@b", count: 3, tags: ["a", "b", "c"] }, ["tags many"]], [{ to: "a@b", count: 3, at: null }, []], [{ to: "a@b", count: 3, at: "x" }, ["at type"]],
  [{ to: "a@b", count: 3, mood: "sad" }, ["mood choice"]], [{ to: "a@b", count: 3, deep: { x: "y" } }, ["deep.x type"]], [{ to: "a@b", count: 3, nope: 1 }, ["nope extra"]], [{ to: "a@b", count: 3, any: { x: [1] }, both: "x" }, []], [{ to: "a@b", count: 3, pick: 2, loud: 1 }, ["loud type"]],
])("%j", (value, errors) => expect(validate(FIELD, value).map((error) => `${error.path} ${error.reason}`)).toEqual(errors));
test("schemas that make no sense are JSON, and end", () => {
  const round = { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } };
  for (const schema of [null, 1, [], {}, { type: "weird" }, { $ref: "#/nowhere" }, { $ref: "http://x" }, round]) expect(fieldOf(schema).kind).toBe("json");
  const self: Record<string, unknown> = { type: "object", properties: { me: { $ref: "#" } } };
  expect(fieldOf(self).kind).toBe("object");
  expect(fieldOf({ type: "object", properties: { x: { type: "string", pattern: "(" } } }).kind).toBe("object");
});

// Click guard and document title ---------------------------------------------------------------------------------------

test("what has just come, or moved, is not to be pressed", () => {
  const guard = new ClickGuard(0);
  guard.update({ x: 0, y: 0 }, 0);
  expect(guard.isReady(MIN_STILL_MS - 1)).toBe(false);
  expect(guard.isReady(MIN_STILL_MS)).toBe(true);
  guard.update({ x: 0, y: 2 }, 500);
  expect(guard.isReady(500)).toBe(true);
  guard.update({ x: 0, y: 40 }, 600);
  expect(guard.isReady(600 + MIN_STILL_MS - 1)).toBe(false);
  guard.update({ x: 0, y: 40 }, 900);
  expect(guard.isReady(1000)).toBe(true);
  guard.update({ x: 0, y: 90 }, 1100, true);
  expect(guard.isReady(1100)).toBe(true);
  guard.reset(1200);
  expect(guard.isReady(1201)).toBe(false);
});
test("the title counts", () => expect([documentTitle(0, ""), documentTitle(3, "Mail"), documentTitle(1, "")]).toEqual(["Everturn", "(3) Everturn · Mail", "(1) Everturn"]));
test("each question is news once, and what is for programs never", () => {
  const view = (id: string, kind = "call") => ({ gate: { id, kind } }) as unknown as GateView;
  const known = new Set<string>();
  expect(takeNewGates([view("a"), view("b", "client")], known).map((gateView) => gateView.gate.id)).toEqual(["a"]);
  expect(takeNewGates([view("a"), view("c")], known).map((gateView) => gateView.gate.id)).toEqual(["c"]);
});
test("a rule reads as it is configured, with nothing hidden in it", () => {
  expect(formatRule({ tool: "shell", action: "allow", match: { command: 'git "x" *' } })).toBe('{tool = "shell", match = {command = "git \\"x\\" *"}, action = "allow"}');
  expect(formatRule({ tool: "a\u202e", action: "allow" })).toBe('{tool = "a⟨U+202E⟩", action = "allow"}');
});
