/** Risk hints for commands, paths and URLs. Pure. A hint points at something; no hint does not mean that it is safe. */

// The terminal UI reads the same file.
import table from "../../../src/everturn/terminal/tui/gates/risk_table.json";
import type { useRiskTexts } from "./riskTexts";

export type RiskCode = Exclude<keyof ReturnType<typeof useRiskTexts>, "high" | "look" | "none">;

export interface Risk {
  readonly code: RiskCode;
  readonly level: "high" | "look";
  readonly found: string; // the text that it is about
}

type Row = readonly [RiskCode, Risk["level"], RegExp];

interface RiskPattern {
  readonly code: string;
  readonly level: string;
  readonly pattern: string; // `<NAME>` and similar stand for pieces that many patterns share
  readonly is_case_sensitive?: boolean;
}

const compileRows = (rows: readonly RiskPattern[]): Row[] =>
  rows.map((row) => [row.code as RiskCode, row.level as Risk["level"], compilePattern(row.pattern, row.is_case_sensitive)]);

/** Compile a pattern of the table. */
export function compilePattern(pattern: string, isCaseSensitive = false): RegExp {
  const whole = Object.entries(table.pieces).reduce((text, [name, piece]) => text.replaceAll(`<${name}>`, () => piece), pattern);
  return new RegExp(whole, isCaseSensitive ? "" : "i");
}

const COMMANDS = compileRows(table.commands);
const PATHS = compileRows(table.paths);
const URLS = compileRows(table.urls);
const COMMAND_NAME = compilePattern(table.arguments.command);
const SHELL_TOOL = compilePattern(table.arguments.shell_tool);
const PATH_NAME = compilePattern(table.arguments.path);
const URL_NAME = compilePattern(table.arguments.url);
const URL_VALUE = compilePattern(table.arguments.url_value);
const LIMITS = table.limits;

/** Risks of a command line: each kind once, the most important first. */
export function commandRisks(command: string): Risk[] {
  // As the shell reads it: continued lines are joined, and quotes within a word are removed.
  const joined = command.replace(/\\\r?\n/g, " ");
  const bare = joined.replace(/(\w)(?:''|""|\\)(?=\w)/g, "$1");
  const found = new Map<RiskCode, Risk>();
  for (const text of bare === joined ? windows(joined) : [...windows(joined), ...windows(bare)])
    for (const [code, level, pattern] of COMMANDS) {
      if (found.has(code) && (level !== "high" || found.get(code)!.level === "high")) continue;
      const hit = pattern.exec(text);
      if (hit) found.set(code, { code, level, found: excerpt(hit[0]) });
    }
  if (found.has("delete_all")) found.delete("delete");
  if (found.has("upload") || found.has("remote_code")) found.delete("network");
  if (found.has("system")) found.delete("outside");
  const lines = joined.trim().split("\n").filter((line) => line.trim()).length;
  if (lines > 1) found.set("lines", { code: "lines", level: "look", found: String(lines) });
  return sorted([...found.values()]);
}

function windows(text: string): string[] {
  const found: string[] = [];
  const { window: size, window_overlap: overlap } = LIMITS; // windows bound the running time of every pattern
  for (let at = 0; at === 0 || at + overlap < text.length; at += size - overlap) found.push(text.slice(at, at + size));
  return found;
}

/** Risks of a file path. */
export function pathRisks(path: string): Risk[] {
  return byTable(PATHS, path);
}

/** Risks of a URL. */
export function urlRisks(url: string): Risk[] {
  const found = byTable(URLS, url);
  const query = /[?#].*$/s.exec(url)?.[0] ?? "";
  return query.length > LIMITS.query ? [...found, { code: "url_long", level: "look", found: excerpt(query) }] : found;
}

function byTable(rows: readonly Row[], text: string): Risk[] {
  const found = new Map<RiskCode, Risk>();
  for (const [code, level, pattern] of rows) {
    const hit = pattern.exec(text);
    if (hit && !found.has(code)) found.set(code, { code, level, found: excerpt(hit[0] || text) });
  }
  return sorted([...found.values()]);
}

export interface Hint extends Risk {
  readonly where: string; // the argument
}

/** Risk hints for the arguments of a call, by their names and values. */
export function hintsFor(tool: string, value: unknown, where = ""): Hint[] {
  if (typeof value === "string") return textHints(tool, value.slice(0, LIMITS.value), where);
  if (Array.isArray(value)) {
    const last = where.split(".").at(-1) ?? "";
    if (value.length && value.every((item) => typeof item === "string") && COMMAND_NAME.test(last))
      return textHints(tool, (value as string[]).join(" ").slice(0, LIMITS.value), where);
    return value.slice(0, LIMITS.items).flatMap((item, index) => hintsFor(tool, item, `${where}.${index}`));
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).slice(0, LIMITS.items).flatMap(([name, item]) => hintsFor(tool, item, where ? `${where}.${name}` : name));
}

function textHints(tool: string, text: string, where: string): Hint[] {
  const name = where.replace(/(?:\.\d+)+$/, "").split(".").at(-1) ?? "";
  const put = (risks: Risk[]) => risks.map((risk) => ({ ...risk, where }));
  if (URL_NAME.test(name) || URL_VALUE.test(text)) return put(urlRisks(text.trim()));
  if (PATH_NAME.test(name)) return put(pathRisks(text));
  if (COMMAND_NAME.test(name) || SHELL_TOOL.test(tool)) return put(commandRisks(text));
  return [];
}

const sorted = (risks: Risk[]) => [...risks.filter((risk) => risk.level === "high"), ...risks.filter((risk) => risk.level !== "high")];

function excerpt(text: string): string {
  const trimmed = text.trim().replace(/^[;&|({`"']\s*/, "").replace(/\s+/g, " ");
  return trimmed.length > LIMITS.excerpt ? `${trimmed.slice(0, LIMITS.excerpt - 1)}…` : trimmed;
}
