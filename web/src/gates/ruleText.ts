/** Rule as text, in the syntax of the configuration. Pure. */
import type { Rule } from "@everturn/client";
import { escapeInvisible } from "./invisibleChars";

const quote = (text: string) => `"${escapeInvisible(text).replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;

export function formatRule(rule: Rule): string {
  const pairs = Object.entries(rule.match ?? {}).map(([name, pattern]) => `${/^[\w-]+$/.test(name) ? name : quote(name)} = ${quote(pattern)}`);
  const match = pairs.length ? `match = {${pairs.join(", ")}}, ` : "";
  return `{tool = ${quote(rule.tool)}, ${match}action = "${rule.action}"}`;
}
