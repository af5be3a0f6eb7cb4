import { describe, expect, it } from "vitest";
import type { RuleView, ToolRules } from "@everturn/client";
import { groupTools, isSameRule, groupByLayer, parseArguments, argumentTemplate, withModel } from "../../src/pages/rules";

const rule = (tool: string, more: Partial<RuleView["rule"]> = {}): RuleView => ({ rule: { tool, action: "allow", ...more }, text: `{tool = "${tool}"}`, shadow: "", scope: "" });
const tool = (name: string, more: Partial<ToolRules> = {}): ToolRules => ({
  name, origin: "function", group: "", approval: "auto", review: "never", read_only: true, idempotent: false, is_offered: true, manual: false, egress: false, subjects: {}, ...more,
});

describe("rules", () => {
  it("stand by layers, the widest first, and one that says nothing is of the configuration", () => {
    const found = groupByLayer([rule("b", { layer: "agent" }), rule("a"), rule("c", { layer: "agent" })]);
    expect(found.map(([layer, rules]) => [layer, rules.map((rule) => rule.rule.tool)])).toEqual([["config", ["a"]], ["agent", ["b", "c"]]]);
  });

  it("are the same only at the same place", () => {
    const first = rule("a", { source: "x:1" });
    expect(isSameRule(first, rule("a", { source: "x:1", layer: "config" }))).toBe(true);
    expect(isSameRule(first, rule("a", { source: "x:2" }))).toBe(false);
    expect(isSameRule(first, rule("a", { source: "x:1", layer: "agent" }))).toBe(false);
    expect(isSameRule(null, first)).toBe(false);
  });
});

it("tools stand by group or server, those of neither first", () => {
  const found = groupTools([tool("z", { group: "files" }), tool("a"), tool("m", { origin: "mcp:docs" }), tool("b")]);
  expect(found.map(([name, tools]) => [name, tools.map((tool) => tool.name)])).toEqual([["", ["a", "b"]], ["files", ["z"]], ["mcp:docs", ["m"]]]);
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
    expect(argumentTemplate(schema)).toEqual({ path: "", count: 3, mode: "r", deep: { on: false }, either: [] });
  });

  it("are none where a schema says nothing, and never what it only claims to need", () => {
    expect(argumentTemplate({})).toEqual({});
    expect(argumentTemplate({ required: ["__proto__", "x"], properties: { x: {} } })).toEqual({ x: "" });
  });

  it("are read as an object and nothing else", () => {
    expect(parseArguments(' {"a": 1} ')).toEqual({ a: 1 });
    expect(parseArguments("")).toEqual({});
    for (const text of ["[]", "null", "1", "{", '"a"']) expect(parseArguments(text)).toBeUndefined();
  });
});

it("another model of a server is named in its place, to the letter", () => {
  const toml = '[agents.a]\nmodel = "ollama:qwen3:8b"\n';
  expect(withModel(toml, "qwen3:8b", "llama3")).toBe('[agents.a]\nmodel = "ollama:llama3"\n');
  expect(withModel(toml, "qwen3:8b", 'x"$&\\')).toBe('[agents.a]\nmodel = "ollama:x\\"$&\\\\"\n');
});
