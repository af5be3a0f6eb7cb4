/** The condition of an inbound hook as text: a line for each field, `action = opened, reopened`. */
export type When = Readonly<Record<string, readonly string[]>>;

export const textOfWhen = (when: When) => Object.entries(when).map(([path, values]) => `${path} = ${values.join(", ")}`).join("\n");

export function whenOfText(text: string): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    const path = (at < 0 ? line : line.slice(0, at)).trim();
    const values = at < 0 ? [] : line.slice(at + 1).split(",").map((value) => value.trim()).filter(Boolean);
    if (path) found[path] = values.length ? values : ["*"];
  }
  return found;
}
