/** Context report: how full the context window is, in words and in pieces of a bar. Pure. */
import type { ContextUsage, ContextReport } from "@everturn/client";

export const WARN_AT = 0.85; // share of the limit

/** How urgent it is: `warn` shortly before earlier messages are summarised, `full` where a request may be refused. */
export function urgency({ share }: ContextReport): "" | "warn" | "full" {
  return !share || share < WARN_AT ? "" : share < 1 ? "warn" : "full";
}

/** What happens at the limit: a summary, nothing, or nothing because summaries were of no use. */
export function nextStep({ policy, paused, limit }: ContextReport): "summarise" | "paused" | "off" | "lastTurns" | "unknown" {
  if (policy !== "auto") return policy === "off" ? "off" : "lastTurns";
  return !limit ? "unknown" : paused ? "paused" : "summarise";
}

/** The number of turns that a model reads under `last_turns(n)`. */
export function lastTurns(policy: string): number {
  return Number(/^last_turns\((\d+)\)$/.exec(policy)?.[1] ?? 0);
}

export interface Piece {
  readonly kind: ContextUsage["kind"] | "free" | "reserve";
  readonly tokens: number;
  /** In percent of the bar. */
  readonly width: number;
}

export interface ContextBar {
  readonly pieces: readonly Piece[];
  /** Where the conversation is compacted, in percent of the bar. */
  readonly marks: readonly { readonly at: "clear" | "summarise"; readonly tokens: number; readonly place: number }[];
}

/** The bar is as long as the window, or as what is used, where that is more or the window is unknown. */
export function buildBar(report: ContextReport): ContextBar {
  const { used = 0, limit = 0, window = 0, parts = [] } = report;
  const total = Math.max(window, limit, used, 1);
  const width = (tokens: number) => (tokens / total) * 100;
  const free = Math.max(0, limit - used);
  const reserve = limit ? Math.max(0, total - Math.max(limit, used)) : 0;
  const pieces: Piece[] = parts.map(({ kind, tokens }) => ({ kind, tokens, width: width(tokens) }));
  if (free) pieces.push({ kind: "free", tokens: free, width: width(free) });
  if (reserve) pieces.push({ kind: "reserve", tokens: reserve, width: width(reserve) });
  const marks = ([["clear", report.clear_at ?? 0], ["summarise", report.summarize_at ?? 0]] as const).filter(([, tokens]) => tokens > 0);
  return { pieces, marks: marks.map(([at, tokens]) => ({ at, tokens, place: width(tokens) })) };
}
