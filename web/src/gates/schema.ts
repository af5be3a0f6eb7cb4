/** A JSON Schema → fields that a person can fill in, and what is wrong with a value. Pure.
 *
 * What it does not understand is a field of JSON; the server checks everything again.
 */
import { isObject } from "./json";

export type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  readonly kind: "text" | "number" | "integer" | "boolean" | "choice" | "list" | "object" | "json";
  readonly title: string;
  readonly about: string;
  readonly isNullable: boolean;
  readonly isLong: boolean; // a text of several lines
  readonly options: readonly { readonly value: unknown; readonly label: string }[]; // of a choice
  readonly item: Field | null; // of a list
  readonly fields: readonly { readonly name: string; readonly field: Field; readonly isNeeded: boolean }[]; // of an object
  readonly isOpen: boolean; // an object may hold more
  readonly default: unknown;
  readonly schema: Schema;
}

export interface Wrong {
  readonly path: string;
  readonly why: "missing" | "type" | "integer" | "least" | "most" | "short" | "long" | "pattern" | "few" | "many" | "choice" | "extra" | "notJson";
  readonly bound: string;
}

/** What stands for a text that is no JSON yet: it is kept in its place, and nothing that holds it can be sent. */
export const BROKEN = Symbol("no JSON");

/** A member of an object, and nothing that all objects have. */
export const own = (of: Record<string, unknown>, name: string): unknown => (Object.hasOwn(of, name) ? of[name] : undefined);

const DEEPEST = 6;

/** The field that a schema describes. */
export function fieldOf(schema: unknown, root: unknown = schema, depth = 0): Field {
  const { at, isNullable } = resolved(schema, root);
  const text = (name: string) => (typeof at[name] === "string" ? (at[name] as string) : "");
  const base = {
    title: text("title"), about: text("description"), isNullable, isLong: text("format") === "textarea" || Number(at["maxLength"] ?? 0) > 200,
    options: [], item: null, fields: [], isOpen: false, default: at["default"], schema: at,
  } as const;
  const options = choices(at);
  if (options) return { ...base, kind: "choice", options };
  const type = at["type"];
  if (type === "string") return { ...base, kind: "text" };
  if (type === "number" || type === "integer" || type === "boolean") return { ...base, kind: type };
  if (type === "array" && isObject(at["items"]) && depth < DEEPEST) return { ...base, kind: "list", item: fieldOf(at["items"], root, depth + 1) };
  const properties = at["properties"];
  if ((type === "object" || type === undefined) && isObject(properties) && depth < DEEPEST && !at["oneOf"] && !at["anyOf"]) {
    const needed = Array.isArray(at["required"]) ? at["required"] : [];
    const fields = Object.entries(properties).map(([name, one]) => ({ name, field: fieldOf(one, root, depth + 1), isNeeded: needed.includes(name) }));
    return { ...base, kind: "object", fields, isOpen: at["additionalProperties"] !== false };
  }
  return { ...base, kind: "json" };
}

function resolved(schema: unknown, root: unknown): { at: Record<string, unknown>; isNullable: boolean } {
  let at = isObject(schema) ? schema : {};
  let isNullable = false;
  for (let turns = 0; turns < 10; turns++) {
    const { $ref, allOf, anyOf, oneOf, type, ...rest } = at;
    const some = (anyOf ?? oneOf) as unknown;
    if (typeof $ref === "string") at = { ...follow($ref, root), ...rest };
    else if (Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0])) at = { ...allOf[0], ...rest };
    else if (Array.isArray(some) && some.length === 2 && some.some(isNull)) {
      isNullable = true;
      at = { ...(some.find((one) => !isNull(one)) as object), ...rest };
    } else if (Array.isArray(some) && some.length === 1 && isObject(some[0])) at = { ...some[0], ...rest };
    else if (Array.isArray(type) && type.length === 2 && type.includes("null")) {
      isNullable = true;
      at = { ...at, type: type.find((one) => one !== "null") };
    } else if (Array.isArray(type) && type.length === 1) at = { ...at, type: type[0] };
    else break;
  }
  return { at, isNullable };
}

const isNull = (schema: unknown) => isObject(schema) && (schema["type"] === "null" || schema["const"] === null);

function follow(ref: string, root: unknown): Record<string, unknown> {
  if (!ref.startsWith("#")) return {};
  let at: unknown = root;
  for (const step of ref.slice(1).split("/").filter(Boolean)) at = isObject(at) ? at[step.replace(/~1/g, "/").replace(/~0/g, "~")] : undefined;
  return isObject(at) ? at : {};
}

function choices(schema: Schema): Field["options"] | null {
  const label = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  if (Array.isArray(schema["enum"])) {
    const names = Array.isArray(schema["enumNames"]) ? schema["enumNames"] : [];
    return schema["enum"].map((value: unknown, at) => ({ value, label: typeof names[at] === "string" ? (names[at] as string) : label(value) }));
  }
  if ("const" in schema) return [{ value: schema["const"], label: label(schema["const"]) }];
  const some = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(some) || !some.length || !some.every((one) => isObject(one) && "const" in one)) return null;
  return (some as Record<string, unknown>[]).map((one) => ({ value: one["const"], label: typeof one["title"] === "string" ? one["title"] : label(one["const"]) }));
}

/** What a field holds before anybody has written anything; undefined: it is left out. */
export function initial(field: Field, isNeeded = true): unknown {
  if (field.default !== undefined) return field.default;
  if (!isNeeded) return undefined;
  if (field.isNullable) return null;
  switch (field.kind) {
    case "text":
      return "";
    case "boolean":
      return false;
    case "choice":
      return field.options.length === 1 ? field.options[0]!.value : undefined;
    case "list":
      return [];
    case "object": {
      const made: [string, unknown][] = field.fields.map(({ name, field: one, isNeeded: must }) => [name, initial(one, must)]);
      return Object.fromEntries(made.filter(([, value]) => value !== undefined));
    }
    default:
      return undefined;
  }
}

/** What is wrong with a value, and where. */
export function check(field: Field, value: unknown, path = "", isNeeded = true): Wrong[] {
  const wrong = (why: Wrong["why"], bound: unknown = "") => [{ path, why, bound: String(bound) }];
  if (value === BROKEN) return wrong("notJson");
  if (value === undefined) return isNeeded ? wrong("missing") : [];
  if (value === null && field.isNullable) return [];
  const { schema } = field;
  const bound = (name: string) => (typeof schema[name] === "number" ? (schema[name] as number) : null);
  switch (field.kind) {
    case "text": {
      if (typeof value !== "string") return wrong("type");
      const size = [...value].length;
      if (size < (bound("minLength") ?? 0)) return wrong("short", bound("minLength"));
      if (size > (bound("maxLength") ?? Infinity)) return wrong("long", bound("maxLength"));
      return fits(schema["pattern"], value) ? [] : wrong("pattern", schema["pattern"]);
    }
    case "number":
    case "integer": {
      if (typeof value !== "number" || !Number.isFinite(value)) return wrong("type");
      if (field.kind === "integer" && !Number.isSafeInteger(value)) return wrong("integer");
      if (value < (bound("minimum") ?? -Infinity) || value <= (bound("exclusiveMinimum") ?? -Infinity)) return wrong("least", bound("minimum") ?? bound("exclusiveMinimum"));
      if (value > (bound("maximum") ?? Infinity) || value >= (bound("exclusiveMaximum") ?? Infinity)) return wrong("most", bound("maximum") ?? bound("exclusiveMaximum"));
      return [];
    }
    case "boolean":
      return typeof value === "boolean" ? [] : wrong("type");
    case "choice":
      return field.options.some((option) => JSON.stringify(option.value) === JSON.stringify(value)) ? [] : wrong("choice");
    case "list": {
      if (!Array.isArray(value)) return wrong("type");
      const size = value.length < (bound("minItems") ?? 0) ? wrong("few", bound("minItems")) : value.length > (bound("maxItems") ?? Infinity) ? wrong("many", bound("maxItems")) : [];
      return [...size, ...value.flatMap((item, at) => check(field.item!, item, join(path, String(at))))];
    }
    case "object": {
      if (!isObject(value)) return wrong("type");
      const names = new Set(field.fields.map((one) => one.name));
      const extra = Object.keys(value).filter((name) => !names.has(name) && (!field.isOpen || value[name] === BROKEN));
      return [
        ...field.fields.flatMap((one) => check(one.field, own(value, one.name), join(path, one.name), one.isNeeded)),
        ...extra.map((name): Wrong => ({ path: join(path, name), why: value[name] === BROKEN ? "notJson" : "extra", bound: "" })),
      ];
    }
    case "json":
      return [];
  }
}

function fits(pattern: unknown, value: string): boolean {
  if (typeof pattern !== "string" || value.length > 500) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // it is not one of ours; the server knows
  }
}

export const join = (path: string, name: string) => (path ? `${path}.${name}` : name);
