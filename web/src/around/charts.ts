/** What was used → the bars of a chart: one for each day, one piece for each agent. */
import type { Spent, UsedView } from "@everturn/client";

export type Measure = "tokens" | "cost" | "steps" | "calls";
export const MEASURES: readonly Measure[] = ["tokens", "cost", "steps", "calls"];

export function amount(spent: Spent, measure: Measure): number {
  const { usage = {} } = spent;
  switch (measure) {
    case "tokens":
      return (usage.input ?? 0) + (usage.output ?? 0);
    case "cost":
      return usage.cost ?? 0;
    case "steps":
      return spent.steps ?? 0;
    case "calls":
      return spent.calls ?? 0;
  }
}

export interface Bar {
  readonly day: string;
  readonly total: number;
  /** In the order of the agents of the chart. */
  readonly pieces: readonly number[];
}

export interface Chart {
  readonly agents: readonly string[];
  readonly bars: readonly Bar[];
  /** The top of the scale: a round number. */
  readonly most: number;
}

const AGENTS = 6; // that have a colour of their own; the rest is one

/** A chart of some days up to and with `today`; days on which nothing was used are there, and empty. */
export function chartOf(used: readonly UsedView[], measure: Measure, days: number, today: string, rest: string): Chart {
  const sums = new Map<string, number>();
  for (const { agent, spent } of used) sums.set(agent, (sums.get(agent) ?? 0) + amount(spent, measure));
  const ordered = [...sums].sort((a, b) => b[1] - a[1]).map(([agent]) => agent);
  const own = ordered.length > AGENTS ? ordered.slice(0, AGENTS - 1) : ordered;
  const agents = ordered.length > AGENTS ? [...own, rest] : own;
  const bars = daysUntil(today, days).map((day) => {
    const pieces = agents.map(() => 0);
    for (const one of used) {
      if (one.day !== day) continue;
      const at = own.indexOf(one.agent);
      pieces[at < 0 ? agents.length - 1 : at]! += amount(one.spent, measure);
    }
    return { day, pieces, total: pieces.reduce((a, b) => a + b, 0) };
  });
  return { agents, bars, most: roundUp(Math.max(0, ...bars.map((bar) => bar.total))) };
}

/** The last days, as the server names them, oldest first. */
export function daysUntil(today: string, days: number): string[] {
  const end = Date.parse(`${today}T00:00:00Z`);
  return Array.from({ length: days }, (_, at) => new Date(end - (days - 1 - at) * 86_400_000).toISOString().slice(0, 10));
}

/** 1, 2, 2.5 or 5 times a power of ten, and not less than a value. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= value * 0.999999) ?? 10) * power;
}
