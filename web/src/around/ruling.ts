/** Rules and schemas → what the page shows of them. */
import type { RuleView, ToolRules } from "@everturn/client";

export type Layer = NonNullable<RuleView["rule"]["layer"]>;
export const LAYERS: readonly Layer[] = ["defaults", "config", "agent", "session", "grants"];

/** A rule leaves out what is usual. */
export const layerOf = (view: RuleView): Layer => view.rule.layer ?? "config";

/** Rules by where they stand, the widest first; a layer without any is left out. */
export function layersOf(rules: readonly RuleView[]): readonly (readonly [Layer, readonly RuleView[]])[] {
  return LAYERS.map((layer) => [layer, rules.filter((one) => layerOf(one) === layer)] as const).filter(([, some]) => some.length > 0);
}

/** Whether two are the same rule, at the same place. */
export function isSame(one: RuleView | null, other: RuleView): boolean {
  return one !== null && one.text === other.text && layerOf(one) === layerOf(other) && (one.rule.source ?? "") === (other.rule.source ?? "");
}

/** Tools by what they belong to: a group, a server, or neither (""), which comes first. */
export function groupsOf(tools: readonly ToolRules[]): readonly (readonly [string, readonly ToolRules[]])[] {
  const found = new Map<string, ToolRules[]>();
  for (const tool of tools) {
    const name = tool.group || (tool.origin.startsWith("mcp:") ? tool.origin : "");
    found.set(name, [...(found.get(name) ?? []), tool]);
  }
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1));
}

type Schema = Readonly<Record<string, unknown>>;

const PLAIN: Readonly<Record<string, unknown>> = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {}, null: null };

/** Arguments to begin with: all that a tool needs, empty; or all that it takes, if it needs nothing. */
export function template(schema: Schema): Record<string, unknown> {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
  const needed = Array.isArray(schema["required"]) ? (schema["required"] as unknown[]).map(String) : [];
  const names = needed.length ? needed.filter((name) => Object.hasOwn(properties, name)) : Object.keys(properties).slice(0, 3);
  return Object.fromEntries(names.map((name) => [name, emptyOf(properties[name] ?? {})]));
}

function emptyOf(schema: Schema): unknown {
  if ("default" in schema) return schema["default"];
  if ("const" in schema) return schema["const"];
  for (const many of ["enum", "examples"]) if (Array.isArray(schema[many]) && (schema[many] as unknown[]).length) return (schema[many] as unknown[])[0];
  for (const many of ["anyOf", "oneOf"]) if (Array.isArray(schema[many])) return emptyOf(((schema[many] as unknown[])[0] ?? {}) as Schema);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  if (type === "object" && schema["properties"]) return template(schema);
  return typeof type === "string" && type in PLAIN ? PLAIN[type] : "";
}

/** A JSON object out of a text; or where it is none, undefined. */
export function readArguments(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** What is to be written for another model of a server than its first. */
export function withModel(toml: string, first: string, chosen: string): string {
  const inside = (name: string) => JSON.stringify(name).slice(1, -1);
  return toml.replace(`:${inside(first)}"`, () => `:${inside(chosen)}"`);
}
