/** Timeline of a turn: the order of its spans, and a scale on which a day at an approval leaves room for the rest. Pure. */
import type { TraceSpan, TraceView, Usage } from "@everturn/client";

/** A span with the depth at which it is drawn. */
export interface TimelineRow {
  readonly span: TraceSpan;
  readonly depth: number;
}

/** The spans as a tree in rows: below each its children, by their starts. */
export function buildRows(spans: readonly TraceSpan[]): TimelineRow[] {
  const children = new Map<string, TraceSpan[]>();
  const known = new Set(spans.map((span) => span.id));
  for (const span of spans) {
    const parent = span.parent && known.has(span.parent) ? span.parent : "";
    const siblings = children.get(parent);
    if (siblings) siblings.push(span);
    else children.set(parent, [span]);
  }
  const rows: TimelineRow[] = [];
  const visit = (parent: string, depth: number) => {
    for (const span of (children.get(parent) ?? []).toSorted((a, b) => a.start - b.start)) {
      rows.push({ span, depth });
      visit(span.id, depth + 1);
    }
  };
  visit("", 0);
  return rows;
}

/** Whether something works during a span: a model, a tool. At a gate, people are waited for. */
const WORK: ReadonlySet<TraceSpan["kind"]> = new Set(["step", "retry", "call", "tool_step", "compaction", "subagent", "late"]);
const SHARE = 0.12; // of the time of work that a stretch of waiting is drawn as, at most

const LEAST = 3; // seconds of waiting that are drawn as long as they were

/** A stretch of waiting that is drawn shorter than it was. */
export interface Break {
  readonly left: number; // per cent
  readonly width: number;
  readonly seconds: number;
}

export interface Scale {
  /** The place of a time, in per cent of the width. */
  readonly at: (time: number) => number;
  readonly breaks: readonly Break[];
}

/** A scale from the start to the end: linear, except that stretches in which nothing works are shortened. */
export function buildScale(spans: readonly TraceSpan[], start: number, end: number): Scale {
  const works = workingTimes(spans, end);
  const edges = [...new Set([start, end, ...works.flat()])].filter((time) => time >= start && time <= end).sort((a, b) => a - b);
  const stretches = edges.slice(1).map((to, index) => {
    const from = edges[index]!;
    return { from, to, isWork: works.some(([begin, stop]) => begin <= from && stop >= to) };
  });
  const worked = stretches.reduce((sum, { from, to, isWork }) => sum + (isWork ? to - from : 0), 0);
  const most = worked > 0 ? Math.max(worked * SHARE, LEAST) : Infinity;
  const drawn = stretches.map((stretch) => ({ ...stretch, length: stretch.isWork ? stretch.to - stretch.from : Math.min(stretch.to - stretch.from, most) }));
  const whole = drawn.reduce((sum, { length }) => sum + length, 0) || 1;
  const places: { from: number; to: number; left: number; width: number }[] = [];
  const breaks: Break[] = [];
  let left = 0;
  for (const { from, to, length } of drawn) {
    const width = (length / whole) * 100;
    places.push({ from, to, left, width });
    if (length < to - from) breaks.push({ left, width, seconds: to - from });
    left += width;
  }
  const at = (time: number) => {
    if (time <= start) return 0;
    const place = places.find(({ to }) => time <= to);
    return place ? Math.min(100, place.left + (place.width * (time - place.from)) / (place.to - place.from || 1)) : 100;
  };
  return { at, breaks };
}

/** When models and tools worked, merged: of a call, the time after its start without the gates and waits below it. */
function workingTimes(spans: readonly TraceSpan[], end: number): [number, number][] {
  const waits = new Map<string, [number, number][]>();
  for (const span of spans) {
    if (span.kind !== "gate" && span.kind !== "wait") continue;
    const times = waits.get(span.parent ?? "") ?? [];
    times.push([span.start, span.end || end]);
    waits.set(span.parent ?? "", times);
  }
  const times: [number, number][] = [];
  for (const span of spans) {
    if (!WORK.has(span.kind)) continue;
    let from = span.kind === "call" ? (span.active_at ?? 0) : span.start;
    if (!from) continue;
    for (const [begin, stop] of (waits.get(span.id) ?? []).toSorted((a, b) => a[0] - b[0])) {
      if (begin > from) times.push([from, begin]);
      from = Math.max(from, stop);
    }
    if ((span.end || end) > from) times.push([from, span.end || end]);
  }
  return merge(times);
}

function merge(times: [number, number][]): [number, number][] {
  const merged: [number, number][] = [];
  for (const [from, to] of times.sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** The numbers of a turn that two turns are compared by. */
export const MEASURES = ["seconds", "active", "waiting", "first", "steps", "calls", "retries", "input", "cached", "output", "cost"] as const;
export type Measure = (typeof MEASURES)[number];

export function measuresOf(trace: TraceView): Record<Measure, number> {
  const { stats, usage } = trace;
  const { seconds = 0, waiting_seconds: waiting = 0 } = stats;
  return {
    seconds,
    active: seconds - waiting,
    waiting,
    first: stats.first_token_seconds ?? 0,
    steps: stats.steps ?? 0,
    calls: stats.calls ?? 0,
    retries: (stats.retries ?? 0) + (stats.restarts ?? 0),
    input: usage.input ?? 0,
    cached: usage.cached ?? 0,
    output: usage.output ?? 0,
    cost: usage.cost ?? 0,
  };
}

/** The tokens of a span, or 0. */
export const tokensOf = (usage: Usage | null | undefined) => (usage ? (usage.input ?? 0) + (usage.output ?? 0) : 0);
