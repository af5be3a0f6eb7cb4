/** JSON texts compared by value. Pure. */

export const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Whether two JSON texts have the same value: the order of names, white space and escapes do not count. Numbers are compared to the
 * last digit, and a text with a duplicate name equals no other. The same as `is_same_value` in the server.
 */
export function isSameValue(left: string, right: string): boolean {
  if (left === right) return true;
  try {
    return canonical(left) === canonical(right);
  } catch {
    return false;
  }
}

function canonical(text: string): string {
  JSON.parse(text); // throws for invalid JSON
  const tokens = text.match(TOKEN) ?? [];
  let position = 0;
  const value = (): string => {
    const token = tokens[position++]!;
    if (token === "[") {
      const items: string[] = [];
      for (; tokens[position] !== "]"; position += tokens[position] === "," ? 1 : 0) items.push(value());
      position += 1;
      return `[${items.join()}]`;
    }
    if (token === "{") {
      const members = new Map<string, string>();
      for (; tokens[position] !== "}"; position += tokens[position] === "," ? 1 : 0) {
        const name = JSON.stringify(JSON.parse(tokens[position]!));
        position += 2;
        if (members.has(name)) throw new SyntaxError("a name is there twice");
        members.set(name, value());
      }
      position += 1;
      return `{${[...members].sort(([a], [b]) => (a < b ? -1 : 1)).map((member) => member.join(":")).join()}}`;
    }
    if (token.startsWith('"')) return JSON.stringify(JSON.parse(token));
    return /^[-\d]/.test(token) ? decimal(token) : token;
  };
  return value();
}

/** Canonical form of a number: 1.0, 1 and 10e-1 are the same. */
function decimal(token: string): string {
  const [, sign, whole = "", part = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token)!;
  const digits = (whole + part).replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  return short ? `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}` : "0";
}
