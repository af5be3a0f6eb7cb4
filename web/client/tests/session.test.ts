import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SessionFollower } from "../src/session";
import type { StreamItem } from "../src/types.gen";
import { seededRandom, clientFor, recorded, type Plan } from "./recorded";

// Time does not pass: timers fire at once, and the silence timeout never does.
const later = setTimeout;
beforeEach(() => {
  vi.stubGlobal("setTimeout", (run: () => void, ms = 0) => (ms < 15_000 ? later(run) : undefined));
});
afterEach(() => void vi.unstubAllGlobals());

async function moments(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
}

const { items, messages } = recorded;

/** The state after the log and the deltas of the first messages, computed in the simplest way. */
function plainly(count: number): { parts: Map<string, string[]>; seq: number } {
  const parts = new Map<string, string[]>();
  let seq = 0;
  for (const item of items.slice(0, count)) {
    if (item.delta) (parts.get(item.delta.turn)![item.delta.part] ??= "", (parts.get(item.delta.turn)![item.delta.part] += item.delta.text));
    if (!item.event) continue;
    seq = item.seq!;
    if (["StepStarted", "StepRestarted", "StepFinished", "StepInterrupted"].includes(item.event.type)) {
      parts.set((item.event as { turn: string }).turn, []);
    }
  }
  return { parts, seq };
}

function check(follower: SessionFollower, count: number): void {
  const { parts, seq } = plainly(count);
  expect(follower.state.seq).toBe(seq);
  for (const [turn, texts] of parts) expect(follower.state.turns.get(turn)!.live.map((part) => part.text), turn).toEqual(texts);
}

/** The live parts of a streaming step equal its parts when it has ended: each character once, none lost. */
function watchSteps(follower: SessionFollower, take: (item: StreamItem) => void): void {
  const before = follower["receive" as never] as (message: { data: string }) => unknown;
  follower["receive" as never] = ((message: { data: string }) => {
    const item = JSON.parse(message.data) as StreamItem;
    take(item);
    return before.call(follower, message);
  }) as never;
}

test("over a thousand breaks no character is lost and none comes twice", async () => {
  const random = seededRandom(7);
  let ended = 0;
  const plan: Plan = {
    written: messages.length, connections: [],
    breaksAfter: () => Math.floor(random() ** 2 * 1500),
    piece: () => 1 + Math.floor(random() ** 3 * 900),
  };
  while (plan.connections.length < 1000) {
    const follower = new SessionFollower(clientFor(plan), "s", (run) => run());
    plan.written = 5 + Math.floor(random() * 80); // what was written when the log was read; the rest comes over the stream
    watchSteps(follower, (item) => {
      const { event } = item;
      if (event?.type !== "StepFinished") return;
      const live = follower.state.turns.get(event.turn)!.live.map((part) => part.text);
      expect(live).toEqual(event.parts.map((part) => ("arguments" in part ? part.arguments : "text" in part ? part.text : "")));
      ended += 1;
    });
    follower.start();
    await moments(200);
    while (plan.written < messages.length || follower.state.seq < items.at(-1)!.seq!) {
      plan.written = Math.min(messages.length, plan.written + Math.floor(random() * 60));
      if (random() < 0.1) follower.pause();
      if (random() < 0.1) follower.client.suspend();
      await moments(40 * random());
      follower.client.resume();
      follower.start();
    }
    check(follower, messages.length);
    follower.pause();
  }
  expect(ended).toBeGreaterThan(10);
}, 60_000);

test("whoever comes in the middle of a step sees all of it, and whoever was there sees the same", async () => {
  const steps = items.flatMap((item, index) => (item.event?.type === "StepStarted" || item.event?.type === "StepFinished" ? [index] : []));
  for (const written of steps.flatMap((step) => [step + 1, step + 2, step + 30])) {
    const plan: Plan = { written, connections: [], breaksAfter: () => null };
    const follower = new SessionFollower(clientFor(plan), "s");
    follower.start();
    await moments(200);
    check(follower, written);
    follower.pause();
    plan.written = Math.min(written + 60, messages.length); // past the end of some steps, and not of their turns
    follower.start();
    await moments(200);
    check(follower, plan.written);
    follower.pause();
    plan.written = messages.length;
    follower.start();
    await moments(200);
    check(follower, messages.length);
    follower.pause();
  }
});

test("a log that began anew is shown from its beginning", async () => {
  const plan: Plan = { written: messages.length, connections: [], breaksAfter: () => null };
  const follower = new SessionFollower(clientFor(plan), "s");
  follower.start();
  await moments(200);
  Object.assign(follower, { cursor: "999:998=5" }); // as the server does: an unknown cursor is the beginning
  follower.state.seq = 999;
  follower.pause();
  plan.connections.length = 0;
  const receive = (at: number) => (follower["receive" as never] as (message: unknown) => void).call(follower, messages[at]);
  items.forEach((_, index) => receive(index));
  check(follower, messages.length);
});

test("a file part of a step, of which nothing streams, leaves no hole", async () => {
  const { applyDelta, emptySession } = await import("../src/fold");
  const state = emptySession();
  const delta = { turn: "t", seq: 1, offset: 0 };
  applyDelta(state, { type: "TextDelta", ...delta, part: 2, text: "b" }, () => {});
  applyDelta(state, { type: "CallDelta", ...delta, part: 0, text: "{", call: "c", name: "look" }, () => {});
  applyDelta(state, { type: "CallDelta", ...delta, offset: 1, part: 0, text: "}", call: "c", name: "look" }, () => {});
  const live = state.turns.get("t")!.live;
  expect([...live]).toEqual([
    { kind: "call", text: "{}", call: "c", name: "look" },
    { kind: "text", text: "", call: "", name: "" },
    { kind: "text", text: "b", call: "", name: "" },
  ]);
});
