/** JSON as it was written: laid out anew between its tokens, and not one of them changed. Pure. */

import { TOKEN } from "@everturn/client";

/** A JSON text with line breaks and blanks; null when it is none. Numbers and strings stay as they were written. */
export function pretty(text: string): string | null {
  if (parse(text) === undefined) return null;
  let out = "";
  let depth = 0;
  const tokens = text.match(TOKEN) ?? [];
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, at) => {
    if (token === "{" || token === "[") {
      depth += 1;
      const isEmpty = tokens[at + 1] === (token === "{" ? "}" : "]");
      out += token + (isEmpty ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const isEmpty = tokens[at - 1] === (token === "}" ? "{" : "[");
      out += (isEmpty ? "" : line()) + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  });
  return out;
}

/** The value of a JSON text; undefined when it is none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The members of a JSON object as they were written, in order: name and text of the value; null: it is no object. */
export function members(text: string): [string, string][] | null {
  if (!isObject(parse(text))) return null;
  const tokens = text.match(TOKEN) ?? [];
  const found: [string, string][] = [];
  let depth = 0;
  let name = "";
  let value = "";
  tokens.forEach((token, at) => {
    if (token === "}" || token === "]") depth -= 1;
    if (depth === 1 && (token === "," || token === ":")) {
      if (token === ",") value = "";
    } else if (depth === 1 && tokens[at + 1] === ":" && !value) name = token;
    else if (depth >= 1) value += token;
    if (token === "{" || token === "[") depth += 1;
    const isEnd = depth === 1 && value && (tokens[at + 1] === "," || tokens[at + 1] === "}");
    if (isEnd) found.push([JSON.parse(name) as string, value]);
  });
  return found;
}

/** Whether a value read from this text, and written again, is the same: no number too long, no name twice. */
export function isExact(text: string): boolean {
  let isSame = true;
  const stack: (Set<string> | null)[] = [];
  const tokens = text.match(TOKEN) ?? [];
  tokens.forEach((token, at) => {
    if (token === "{") stack.push(new Set());
    else if (token === "[") stack.push(null);
    else if (token === "}" || token === "]") stack.pop();
    else if (token.startsWith('"') && tokens[at + 1] === ":") {
      const names = stack.at(-1);
      const name = JSON.parse(token) as string;
      if (names?.has(name)) isSame = false;
      names?.add(name);
    } else if (/^-?\d/.test(token) && !isExactNumber(token)) isSame = false;
  });
  return isSame;
}

/** Whether this is a number as JSON writes it, and is kept to its last digit. */
export function isExactNumber(token: string): boolean {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(token)) return false;
  if (/^-?\d+$/.test(token)) return Number.isSafeInteger(Number(token));
  const digits = token.replace(/[eE].*$/, "").replace(/^[-0.]+/, "").replace(/0+$/, "").replace(".", "");
  return digits.length <= 15 && Number.isFinite(Number(token));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
