/** A rule, written as the configuration has it. Pure. */
import type { Rule } from "@everturn/client";
import { plain } from "./hidden";

const quote = (text: string) => `"${plain(text).replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;

export function sayRule(rule: Rule): string {
  const pairs = Object.entries(rule.match ?? {}).map(([name, pattern]) => `${/^[\w-]+$/.test(name) ? name : quote(name)} = ${quote(pattern)}`);
  const match = pairs.length ? `match = {${pairs.join(", ")}}, ` : "";
  return `{tool = ${quote(rule.tool)}, ${match}action = "${rule.action}"}`;
}
