/** Usage chart: one bar per day, one piece per agent. */
import type { Spent, DailyUsage } from "@everturn/client";

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
  /** In the order of the chart's agents. */
  readonly pieces: readonly number[];
}

export interface Chart {
  readonly agents: readonly string[];
  readonly bars: readonly Bar[];
  /** The top of the scale: a round number. */
  readonly max: number;
}

const MAX_AGENTS = 6; // agents with a colour of their own; the rest share one

/** Build the chart of the days up to and including `today`; days without usage are empty. */
export function buildChart(used: readonly DailyUsage[], measure: Measure, days: number, today: string, rest: string): Chart {
  const sums = new Map<string, number>();
  for (const { agent, spent } of used) sums.set(agent, (sums.get(agent) ?? 0) + amount(spent, measure));
  const ordered = [...sums].sort((a, b) => b[1] - a[1]).map(([agent]) => agent);
  const charted = ordered.length > MAX_AGENTS ? ordered.slice(0, MAX_AGENTS - 1) : ordered;
  const agents = ordered.length > MAX_AGENTS ? [...charted, rest] : charted;
  const bars = lastDays(today, days).map((day) => {
    const pieces = agents.map(() => 0);
    for (const row of used) {
      if (row.day !== day) continue;
      const index = charted.indexOf(row.agent);
      pieces[index < 0 ? agents.length - 1 : index]! += amount(row.spent, measure);
    }
    return { day, pieces, total: pieces.reduce((a, b) => a + b, 0) };
  });
  return { agents, bars, max: roundUp(Math.max(0, ...bars.map((bar) => bar.total))) };
}

/** The last days, as the server names them, oldest first. */
export function lastDays(today: string, days: number): string[] {
  const end = Date.parse(`${today}T00:00:00Z`);
  return Array.from({ length: days }, (_, index) => new Date(end - (days - 1 - index) * 86_400_000).toISOString().slice(0, 10));
}

/** Round up to 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= value * 0.999999) ?? 10) * power;
}
