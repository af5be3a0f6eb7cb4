/** JSON Schema to form fields, and validation of a value. Pure.
 *
 * What is not supported becomes a JSON field; the server validates everything again.
 */
import { isObject } from "./json";

export type Schema = Readonly<Record<string, unknown>>;

export interface Field {
  readonly kind: "text" | "number" | "integer" | "boolean" | "choice" | "list" | "object" | "json";
  readonly title: string;
  readonly about: string;
  readonly isNullable: boolean;
  readonly isLong: boolean; // multi-line text
  readonly options: readonly { readonly value: unknown; readonly label: string }[]; // of a choice
  readonly item: Field | null; // of a list
  readonly fields: readonly { readonly name: string; readonly field: Field; readonly isNeeded: boolean }[]; // of an object
  readonly isOpen: boolean; // additional properties are allowed
  readonly default: unknown;
  readonly schema: Schema;
}

export interface FieldError {
  readonly path: string;
  readonly reason: "missing" | "type" | "integer" | "least" | "most" | "short" | "long" | "pattern" | "few" | "many" | "choice" | "extra" | "notJson";
  readonly bound: string;
}

/** Stands for a text that is not valid JSON yet: it keeps its place, and a value that contains it cannot be sent. */
export const INVALID_JSON = Symbol("no JSON");

/** An own property of an object, nothing inherited. */
export const ownProperty = (of: Record<string, unknown>, name: string): unknown => (Object.hasOwn(of, name) ? of[name] : undefined);

const MAX_DEPTH = 6;

/** The field that a schema describes. */
export function fieldOf(schema: unknown, root: unknown = schema, depth = 0): Field {
  const { node, isNullable } = resolveSchema(schema, root);
  const text = (name: string) => (typeof node[name] === "string" ? (node[name] as string) : "");
  const base = {
    title: text("title"), about: text("description"), isNullable, isLong: text("format") === "textarea" || Number(node["maxLength"] ?? 0) > 200,
    options: [], item: null, fields: [], isOpen: false, default: node["default"], schema: node,
  } as const;
  const options = choices(node);
  if (options) return { ...base, kind: "choice", options };
  const type = node["type"];
  if (type === "string") return { ...base, kind: "text" };
  if (type === "number" || type === "integer" || type === "boolean") return { ...base, kind: type };
  if (type === "array" && isObject(node["items"]) && depth < MAX_DEPTH) return { ...base, kind: "list", item: fieldOf(node["items"], root, depth + 1) };
  const properties = node["properties"];
  if ((type === "object" || type === undefined) && isObject(properties) && depth < MAX_DEPTH && !node["oneOf"] && !node["anyOf"]) {
    const needed = Array.isArray(node["required"]) ? node["required"] : [];
    const fields = Object.entries(properties).map(([name, property]) => ({ name, field: fieldOf(property, root, depth + 1), isNeeded: needed.includes(name) }));
    return { ...base, kind: "object", fields, isOpen: node["additionalProperties"] !== false };
  }
  return { ...base, kind: "json" };
}

function resolveSchema(schema: unknown, root: unknown): { node: Record<string, unknown>; isNullable: boolean } {
  let node = isObject(schema) ? schema : {};
  let isNullable = false;
  for (let turns = 0; turns < 10; turns++) {
    const { $ref, allOf, anyOf, oneOf, type, ...rest } = node;
    const alternatives = (anyOf ?? oneOf) as unknown;
    if (typeof $ref === "string") node = { ...resolveRef($ref, root), ...rest };
    else if (Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0])) node = { ...allOf[0], ...rest };
    else if (Array.isArray(alternatives) && alternatives.length === 2 && alternatives.some(isNull)) {
      isNullable = true;
      node = { ...(alternatives.find((alternative) => !isNull(alternative)) as object), ...rest };
    } else if (Array.isArray(alternatives) && alternatives.length === 1 && isObject(alternatives[0])) node = { ...alternatives[0], ...rest };
    else if (Array.isArray(type) && type.length === 2 && type.includes("null")) {
      isNullable = true;
      node = { ...node, type: type.find((typeName) => typeName !== "null") };
    } else if (Array.isArray(type) && type.length === 1) node = { ...node, type: type[0] };
    else break;
  }
  return { node, isNullable };
}

const isNull = (schema: unknown) => isObject(schema) && (schema["type"] === "null" || schema["const"] === null);

function resolveRef(ref: string, root: unknown): Record<string, unknown> {
  if (!ref.startsWith("#")) return {};
  let node: unknown = root;
  for (const step of ref.slice(1).split("/").filter(Boolean)) node = isObject(node) ? node[step.replace(/~1/g, "/").replace(/~0/g, "~")] : undefined;
  return isObject(node) ? node : {};
}

function choices(schema: Schema): Field["options"] | null {
  const label = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  if (Array.isArray(schema["enum"])) {
    const names = Array.isArray(schema["enumNames"]) ? schema["enumNames"] : [];
    return schema["enum"].map((value: unknown, index) => ({ value, label: typeof names[index] === "string" ? (names[index] as string) : label(value) }));
  }
  if ("const" in schema) return [{ value: schema["const"], label: label(schema["const"]) }];
  const alternatives = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(alternatives) || !alternatives.length || !alternatives.every((alternative) => isObject(alternative) && "const" in alternative)) return null;
  return (alternatives as Record<string, unknown>[]).map((alternative) => ({ value: alternative["const"], label: typeof alternative["title"] === "string" ? alternative["title"] : label(alternative["const"]) }));
}

/** The initial value of a field; undefined: it is left out. */
export function initialValue(field: Field, isNeeded = true): unknown {
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
      const entries: [string, unknown][] = field.fields.map(({ name, field: member, isNeeded: memberNeeded }) => [name, initialValue(member, memberNeeded)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
    default:
      return undefined;
  }
}

/** The errors of a value, with their paths. */
export function validate(field: Field, value: unknown, path = "", isNeeded = true): FieldError[] {
  const fail = (reason: FieldError["reason"], bound: unknown = ""): FieldError[] => [{ path, reason, bound: String(bound) }];
  if (value === INVALID_JSON) return fail("notJson");
  if (value === undefined) return isNeeded ? fail("missing") : [];
  if (value === null && field.isNullable) return [];
  const { schema } = field;
  const bound = (name: string) => (typeof schema[name] === "number" ? (schema[name] as number) : null);
  switch (field.kind) {
    case "text": {
      if (typeof value !== "string") return fail("type");
      const size = [...value].length;
      if (size < (bound("minLength") ?? 0)) return fail("short", bound("minLength"));
      if (size > (bound("maxLength") ?? Infinity)) return fail("long", bound("maxLength"));
      return matchesPattern(schema["pattern"], value) ? [] : fail("pattern", schema["pattern"]);
    }
    case "number":
    case "integer": {
      if (typeof value !== "number" || !Number.isFinite(value)) return fail("type");
      if (field.kind === "integer" && !Number.isSafeInteger(value)) return fail("integer");
      if (value < (bound("minimum") ?? -Infinity) || value <= (bound("exclusiveMinimum") ?? -Infinity)) return fail("least", bound("minimum") ?? bound("exclusiveMinimum"));
      if (value > (bound("maximum") ?? Infinity) || value >= (bound("exclusiveMaximum") ?? Infinity)) return fail("most", bound("maximum") ?? bound("exclusiveMaximum"));
      return [];
    }
    case "boolean":
      return typeof value === "boolean" ? [] : fail("type");
    case "choice":
      return field.options.some((option) => JSON.stringify(option.value) === JSON.stringify(value)) ? [] : fail("choice");
    case "list": {
      if (!Array.isArray(value)) return fail("type");
      const size = value.length < (bound("minItems") ?? 0) ? fail("few", bound("minItems")) : value.length > (bound("maxItems") ?? Infinity) ? fail("many", bound("maxItems")) : [];
      return [...size, ...value.flatMap((item, index) => validate(field.item!, item, joinPath(path, String(index))))];
    }
    case "object": {
      if (!isObject(value)) return fail("type");
      const names = new Set(field.fields.map((member) => member.name));
      const extra = Object.keys(value).filter((name) => !names.has(name) && (!field.isOpen || value[name] === INVALID_JSON));
      return [
        ...field.fields.flatMap((member) => validate(member.field, ownProperty(value, member.name), joinPath(path, member.name), member.isNeeded)),
        ...extra.map((name): FieldError => ({ path: joinPath(path, name), reason: value[name] === INVALID_JSON ? "notJson" : "extra", bound: "" })),
      ];
    }
    case "json":
      return [];
  }
}

function matchesPattern(pattern: unknown, value: string): boolean {
  if (typeof pattern !== "string" || value.length > 500) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // an unsupported pattern; the server checks it
  }
}

export const joinPath = (path: string, name: string) => (path ? `${path}.${name}` : name);
