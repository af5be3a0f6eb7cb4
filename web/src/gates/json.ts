/** JSON texts formatted without changing a token. Pure. */

import { TOKEN } from "@everturn/client";

/** Indent a JSON text; null for invalid JSON. Numbers and strings stay as they were written. */
export function prettyJson(text: string): string | null {
  if (parseJson(text) === undefined) return null;
  let out = "";
  let depth = 0;
  const tokens = text.match(TOKEN) ?? [];
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, index) => {
    if (token === "{" || token === "[") {
      depth += 1;
      const isEmpty = tokens[index + 1] === (token === "{" ? "}" : "]");
      out += token + (isEmpty ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const isEmpty = tokens[index - 1] === (token === "}" ? "{" : "[");
      out += (isEmpty ? "" : line()) + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  });
  return out;
}

/** Parse a JSON text; undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The members of a JSON object as written, in order: name and text of the value; null: not an object. */
export function objectMembers(text: string): [string, string][] | null {
  if (!isObject(parseJson(text))) return null;
  const tokens = text.match(TOKEN) ?? [];
  const found: [string, string][] = [];
  let depth = 0;
  let name = "";
  let value = "";
  tokens.forEach((token, index) => {
    if (token === "}" || token === "]") depth -= 1;
    if (depth === 1 && (token === "," || token === ":")) {
      if (token === ",") value = "";
    } else if (depth === 1 && tokens[index + 1] === ":" && !value) name = token;
    else if (depth >= 1) value += token;
    if (token === "{" || token === "[") depth += 1;
    const isEnd = depth === 1 && value && (tokens[index + 1] === "," || tokens[index + 1] === "}");
    if (isEnd) found.push([JSON.parse(name) as string, value]);
  });
  return found;
}

/** Members in the order of a schema's properties, which is the order their author chose; those that it does not know come last. */
export function orderMembers(members: [string, string][], schema: unknown): [string, string][] {
  const properties = isObject(schema) ? schema["properties"] : undefined;
  if (!isObject(properties)) return members;
  const order = Object.keys(properties);
  const place = ([name]: [string, string]) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...members].sort((left, right) => place(left) - place(right)); // stable: the others keep their order
}

/** Whether parsing and writing this text again loses nothing: no number too long, no duplicate name. */
export function isExact(text: string): boolean {
  let isSame = true;
  const stack: (Set<string> | null)[] = [];
  const tokens = text.match(TOKEN) ?? [];
  tokens.forEach((token, index) => {
    if (token === "{") stack.push(new Set());
    else if (token === "[") stack.push(null);
    else if (token === "}" || token === "]") stack.pop();
    else if (token.startsWith('"') && tokens[index + 1] === ":") {
      const names = stack.at(-1);
      const name = JSON.parse(token) as string;
      if (names?.has(name)) isSame = false;
      names?.add(name);
    } else if (/^-?\d/.test(token) && !isExactNumber(token)) isSame = false;
  });
  return isSame;
}

/** Whether this is a JSON number that a double represents exactly. */
export function isExactNumber(token: string): boolean {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(token)) return false;
  if (/^-?\d+$/.test(token)) return Number.isSafeInteger(Number(token));
  const digits = token.replace(/[eE].*$/, "").replace(/^[-0.]+/, "").replace(/0+$/, "").replace(".", "");
  return digits.length <= 15 && Number.isFinite(Number(token));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
