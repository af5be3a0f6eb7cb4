/// <reference types="node" />
/** A stream that the server sent (tests/web/record.py), and a server that sends it again from any cursor, badly. */
import { readFileSync } from "node:fs";
import { Everturn } from "../src/client";
import { Parser, type StreamMessage } from "../src/sse";
import type { Item, LogEvent } from "../src/types.gen";

const bytes = new Uint8Array(readFileSync(new URL("./recorded.sse", import.meta.url)));
const messages: StreamMessage[] = [];
new Parser((message) => void messages.push(message)).feed(new TextDecoder().decode(bytes));
const items = messages.map((message) => JSON.parse(message.data) as Item);

export const recorded = { bytes, messages, items };

/** Numbers below one, the same ones each time (mulberry32). */
export function chance(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Plan {
  /** How many messages of the recording have been written by now. */
  written: number;
  /** After how many bytes a connection breaks; null: when all was sent it ends. */
  breaksAfter(connection: number): number | null;
  piece?(): number;
  connections: string[];
}

const encoder = new TextEncoder();

/** What is sent of the first so many messages behind a cursor, as `SessionReader` in everturn.core.following has it. */
function behind(after: string, written: number): string {
  const [seq = "0", named = ""] = after.split(":");
  const seen = new Map(named.split(";").map((one) => [Number(one.split("=")[0]), (one.split("=")[1] ?? "").split(",").map(Number)]));
  const open = new Map<string, number>(); // turn -> where its step began
  const ended = new Set<number>(); // steps that were over at the cursor
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
      // Offsets count characters, as Python does, and not what a string is long here.
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
export function clientOf(plan: Plan): Everturn {
  const answer = (input: unknown, init?: RequestInit): Response => {
    const url = new URL(String(input), "http://server");
    const after = url.searchParams.get("after") ?? "";
    if (url.pathname.endsWith("/log")) {
      const events = items.slice(0, plan.written).filter((item) => item.event && item.seq! > Number(after));
      const entries = events.map((item) => ({ seq: item.seq!, event: item.event as LogEvent }));
      return Response.json({ entries: entries.slice(0, 7), is_whole: entries.length <= 7 });
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
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (signal?.aborted) return controller.error(new Error("aborted"));
      if (at >= last) return limit !== null && limit % 2 ? controller.error(new Error("the line went dead")) : controller.close();
      const to = Math.min(at + (plan.piece?.() ?? 4096), last);
      controller.enqueue(sent.subarray(at, to));
      at = to;
    },
  });
}
