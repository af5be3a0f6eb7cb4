/// <reference types="node" />
/** A recorded stream of the server (tests/web/record_stream.py), and a server that replays it from any cursor over bad connections. */
import { readFileSync } from "node:fs";
import { Everturn } from "../src/client";
import { fold } from "../src/fold";
import { SseParser, type StreamMessage } from "../src/sse";
import type { StreamItem, LogEvent } from "../src/types.gen";

const bytes = new Uint8Array(readFileSync(new URL("./recorded.sse", import.meta.url)));
const messages: StreamMessage[] = [];
new SseParser((message) => void messages.push(message)).feed(new TextDecoder().decode(bytes));
const items = messages.map((message) => JSON.parse(message.data) as StreamItem);

export const recorded = { bytes, messages, items };

/** Seeded random numbers below one (mulberry32). */
export function seededRandom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Plan {
  /** How many messages of the recording have been written so far. */
  written: number;
  /** Bytes after which a connection breaks; null: it ends when everything was sent. */
  breaksAfter(connection: number): number | null;
  piece?(): number;
  connections: string[];
}

const encoder = new TextEncoder();

/** What is sent of the first messages after a cursor, as `SessionReader` in everturn.core.following does it. */
function behind(after: string, written: number): string {
  const [seq = "0", named = ""] = after.split(":");
  const seen = new Map(named.split(";").map((pair) => [Number(pair.split("=")[0]), (pair.split("=")[1] ?? "").split(",").map(Number)]));
  const open = new Map<string, number>(); // turn -> where its step started
  const ended = new Set<number>(); // steps that had ended at the cursor
  for (const { seq: on = 0, event } of items) {
    if (!event || on > Number(seq)) continue;
    if (event.type === "StepStarted" || event.type === "StepRestarted") open.set(event.turn, on);
    if (event.type === "StepFinished" || event.type === "StepInterrupted") ended.add(open.get(event.turn)!);
  }
  open.clear();
  let [at, text] = [Number(seq), ""];
  for (const item of items.slice(0, written)) {
    if (item.delta) {
      const { turn, seq: start, part, offset } = item.delta;
      const parts = seen.get(start) ?? [];
      // Offsets count code points, as Python does, not UTF-16 units.
      const end = offset + [...item.delta.text].length;
      if (open.get(turn) !== start || ended.has(start) || end <= (parts[part] ?? -1)) continue;
      while (parts.length < part) parts.push(-1);
      seen.set(start, Object.assign(parts, { [part]: end }));
    } else if (item.event) {
      const { event } = item;
      if (event.type === "StepStarted" || event.type === "StepRestarted") open.set(event.turn, item.seq!);
      if (event.type === "StepFinished" || event.type === "StepInterrupted") open.delete(event.turn);
      if (item.seq! <= Number(seq)) continue;
      at = item.seq!;
    }
    const steps = [...open.values()].filter((start) => seen.get(start)?.length).map((start) => `${start}=${seen.get(start)!.join(",")}`);
    text += `id: ${at}${steps.length ? `:${steps.join(";")}` : ""}\ndata: ${JSON.stringify(item)}\n\n`;
  }
  return text;
}

/** A client of a server that has only the recorded session. */
export function clientFor(plan: Plan): Everturn {
  const answer = (input: unknown, init?: RequestInit): Response => {
    const url = new URL(String(input), "http://server");
    const after = url.searchParams.get("after") ?? "";
    if (url.pathname.endsWith("/log/tail")) {
      const events = items.slice(0, plan.written).filter((item) => item.event);
      const entries = events.map((item) => ({ seq: item.seq!, event: item.event as LogEvent }));
      const { leaf, title } = fold(entries);
      return Response.json({ entries, start: 1, seq: entries.at(-1)?.seq ?? 0, leaf, title });
    }
    plan.connections.push(after);
    const sent = encoder.encode(behind(after, plan.written));
    return new Response(broken(sent, plan, init?.signal), { headers: { "content-type": "text/event-stream; charset=utf-8" } });
  };
  return new Everturn({ base: "http://server", fetch: async (input, init) => answer(input, init) });
}

function broken(sent: Uint8Array, plan: Plan, signal: AbortSignal | null | undefined): ReadableStream<Uint8Array> {
  const limit = plan.breaksAfter(plan.connections.length);
  const last = Math.min(limit ?? sent.length, sent.length);
  let position = 0;
  return new ReadableStream({
    pull(controller) {
      if (signal?.aborted) return controller.error(new Error("aborted"));
      if (position >= last) return limit !== null && limit % 2 ? controller.error(new Error("the line went dead")) : controller.close();
      const to = Math.min(position + (plan.piece?.() ?? 4096), last);
      controller.enqueue(sent.subarray(position, to));
      position = to;
    },
  });
}
