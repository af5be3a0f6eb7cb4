/** Permission rules by layer, tools by group, and argument templates from JSON Schema. Pure. */
import type { RuleView, ToolRules } from "@everturn/client";

export type Layer = NonNullable<RuleView["rule"]["layer"]>;
export const LAYERS: readonly Layer[] = ["defaults", "config", "agent", "session", "grants"];

/** The layer of a rule; config is the default. */
export const layerOf = (view: RuleView): Layer => view.rule.layer ?? "config";

/** Rules by layer, the widest first; empty layers are left out. */
export function groupByLayer(rules: readonly RuleView[]): readonly (readonly [Layer, readonly RuleView[]])[] {
  return LAYERS.map((layer) => [layer, rules.filter((rule) => layerOf(rule) === layer)] as const).filter(([, rules]) => rules.length > 0);
}

/** Whether two are the same rule from the same source. */
export function isSameRule(left: RuleView | null, right: RuleView): boolean {
  return left !== null && left.text === right.text && layerOf(left) === layerOf(right) && (left.rule.source ?? "") === (right.rule.source ?? "");
}

/** Tools by group or server, those with neither ("") first. */
export function groupTools(tools: readonly ToolRules[]): readonly (readonly [string, readonly ToolRules[]])[] {
  const found = new Map<string, ToolRules[]>();
  for (const tool of tools) {
    const name = tool.group || (tool.origin.startsWith("mcp:") ? tool.origin : "");
    found.set(name, [...(found.get(name) ?? []), tool]);
  }
  return [...found].sort(([left], [right]) => (left < right ? -1 : 1));
}

type Schema = Readonly<Record<string, unknown>>;

const EMPTY_VALUES: Readonly<Record<string, unknown>> = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {}, null: null };

/** Arguments to start with: all required ones, empty; or the first few, if none is required. */
export function argumentTemplate(schema: Schema): Record<string, unknown> {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
  const needed = Array.isArray(schema["required"]) ? (schema["required"] as unknown[]).map(String) : [];
  const names = needed.length ? needed.filter((name) => Object.hasOwn(properties, name)) : Object.keys(properties).slice(0, 3);
  return Object.fromEntries(names.map((name) => [name, emptyValue(properties[name] ?? {})]));
}

function emptyValue(schema: Schema): unknown {
  if ("default" in schema) return schema["default"];
  if ("const" in schema) return schema["const"];
  for (const many of ["enum", "examples"]) if (Array.isArray(schema[many]) && (schema[many] as unknown[]).length) return (schema[many] as unknown[])[0];
  for (const many of ["anyOf", "oneOf"]) if (Array.isArray(schema[many])) return emptyValue(((schema[many] as unknown[])[0] ?? {}) as Schema);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  if (type === "object" && schema["properties"]) return argumentTemplate(schema);
  return typeof type === "string" && type in EMPTY_VALUES ? EMPTY_VALUES[type] : "";
}

/** Parse a JSON object; undefined if it is not one. */
export function parseArguments(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The configuration with another model than the first one of a server. */
export function withModel(toml: string, first: string, model: string): string {
  const inside = (name: string) => JSON.stringify(name).slice(1, -1);
  return toml.replace(`:${inside(first)}"`, () => `:${inside(model)}"`);
}
