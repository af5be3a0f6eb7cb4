import { describe, expect, it } from "vitest";
import type { RuleView, ToolRules } from "@everturn/client";
import { groupsOf, isSame, layersOf, readArguments, template, withModel } from "../../src/around/ruling";

const rule = (tool: string, more: Partial<RuleView["rule"]> = {}): RuleView => ({ rule: { tool, action: "allow", ...more }, text: `{tool = "${tool}"}`, shadow: "" });
const tool = (name: string, more: Partial<ToolRules> = {}): ToolRules => ({
  name, origin: "function", group: "", execute: "auto", result: "auto", effects: "read", is_offered: true, by_hand: false, egress: false, subjects: {}, ...more,
});

describe("rules", () => {
  it("stand by layers, the widest first, and one that says nothing is of the configuration", () => {
    const found = layersOf([rule("b", { layer: "agent" }), rule("a"), rule("c", { layer: "agent" })]);
    expect(found.map(([layer, some]) => [layer, some.map((one) => one.rule.tool)])).toEqual([["config", ["a"]], ["agent", ["b", "c"]]]);
  });

  it("are the same only at the same place", () => {
    const one = rule("a", { source: "x:1" });
    expect(isSame(one, rule("a", { source: "x:1", layer: "config" }))).toBe(true);
    expect(isSame(one, rule("a", { source: "x:2" }))).toBe(false);
    expect(isSame(one, rule("a", { source: "x:1", layer: "agent" }))).toBe(false);
    expect(isSame(null, one)).toBe(false);
  });
});

it("tools stand by group or server, those of neither first", () => {
  const found = groupsOf([tool("z", { group: "files" }), tool("a"), tool("m", { origin: "mcp:docs" }), tool("b")]);
  expect(found.map(([name, some]) => [name, some.map((one) => one.name)])).toEqual([["", ["a", "b"]], ["files", ["z"]], ["mcp:docs", ["m"]]]);
});

describe("arguments to begin with", () => {
  it("are all that is needed, empty, with defaults and choices where there are any", () => {
    const schema = {
      type: "object",
      required: ["path", "count", "mode", "deep", "either"],
      properties: {
        path: { type: "string" }, count: { type: "integer", default: 3 }, mode: { enum: ["r", "w"] }, rest: { type: "boolean" },
        deep: { type: "object", properties: { on: { type: "boolean" } } }, either: { anyOf: [{ type: "array" }, { type: "null" }] },
      },
    };
    expect(template(schema)).toEqual({ path: "", count: 3, mode: "r", deep: { on: false }, either: [] });
  });

  it("are none where a schema says nothing, and never what it only claims to need", () => {
    expect(template({})).toEqual({});
    expect(template({ required: ["__proto__", "x"], properties: { x: {} } })).toEqual({ x: "" });
  });

  it("are read as an object and nothing else", () => {
    expect(readArguments(' {"a": 1} ')).toEqual({ a: 1 });
    expect(readArguments("")).toEqual({});
    for (const text of ["[]", "null", "1", "{", '"a"']) expect(readArguments(text)).toBeUndefined();
  });
});

it("another model of a server is named in its place, to the letter", () => {
  const toml = '[agents.a]\nmodel = "ollama:qwen3:8b"\n';
  expect(withModel(toml, "qwen3:8b", "llama3")).toBe('[agents.a]\nmodel = "ollama:llama3"\n');
  expect(withModel(toml, "qwen3:8b", 'x"$&\\')).toBe('[agents.a]\nmodel = "ollama:x\\"$&\\\\"\n');
});
