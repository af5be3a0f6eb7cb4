import { expect, test } from "vitest";
import { addEarlier, apply, emptySession, fold } from "../src/fold";
import { SessionFollower } from "../src/session";
import { Everturn } from "../src/client";
import { path } from "../src/views";
import type { SessionState } from "../src/state";
import type { LogEvent, LogTail } from "../src/types.gen";
import { describeState, goldens } from "./golden";

type Entry = { readonly seq: number; readonly event: LogEvent };

/** The last turns that started before a position, whole, as the server reads them. */
function tail(entries: readonly Entry[], turns: number, before = Infinity): LogTail {
  const starts = entries.filter(({ seq, event }) => event.type === "TurnStarted" && seq < before).slice(-turns - 1);
  const start = starts.length > turns ? starts[1]!.seq : 1;
  const chosen = new Set(starts.filter(({ seq }) => seq >= start).map(({ event }) => (event as { turn: string }).turn));
  const kept = entries.filter(({ seq, event }) => ("turn" in event ? chosen.has(event.turn) : seq >= start && seq < before));
  const whole = fold(entries);
  return { entries: kept, start, seq: entries.at(-1)?.seq ?? 0, leaf: whole.leaf, title: whole.title, cost: null };
}

function load(page: LogTail): SessionState {
  const state = Object.assign(emptySession(), { start: page.start });
  for (const { seq, event } of page.entries) apply(state, seq, event, () => {});
  return Object.assign(state, { seq: page.seq, leaf: page.leaf ?? null, title: page.title ?? "" });
}

const sorted = (state: SessionState) => {
  const described = describeState(state);
  for (const key of Object.keys(described)) if (key.startsWith("children ")) described[key] = [...(described[key] as string[])].sort();
  return described;
};

test("the end of a log, what comes then, and the turns before give what the whole log gives, from every position", () => {
  let split = 0;
  for (const { events, name } of goldens) {
    const entries = events.map((event, index) => ({ seq: index + 1, event }));
    for (let seen = 1; seen <= entries.length; seen++) {
      let state = load(tail(entries.slice(0, seen), 1));
      if (state.start > 1) split += 1;
      for (const { seq, event } of entries.slice(seen)) apply(state, seq, event, () => {});
      // As the follower does when the selected branch ends at a message that is not loaded.
      if (state.leaf !== null && !state.messages.has(state.leaf)) state = load(tail(entries, 1));
      while (state.start > 1) addEarlier(state, tail(entries, 1, state.start), () => {});
      expect(sorted(state), `${name} from ${seen}`).toEqual(sorted(fold(entries)));
    }
  }
  expect(split).toBeGreaterThan(10);
});

const turn = (number: number): LogEvent[] => {
  const [id, parent] = [`t${number}`, number ? `t${number - 1}.out` : null];
  return [
    { type: "TurnStarted", turn: id, at: 1, parent, input: { id: `${id}.in`, parent, role: "user", turn: id, parts: [] } },
    { type: "AnswerStarted", turn: id, at: 1, message: { id: `${id}.out`, parent: `${id}.in`, role: "assistant", turn: id } },
    { type: "TurnFinishing", turn: id, at: 1, outcome: "completed" },
    { type: "TurnCompleted", turn: id, at: 1 },
  ] as unknown as LogEvent[];
};

test("a long conversation is loaded from its end, and earlier turns when they are asked for", async () => {
  const entries = [0, 1, 2, 3, 4].flatMap(turn).map((event, index) => ({ seq: index + 1, event }));
  const asked: string[] = [];
  const fetch = async (input: unknown): Promise<Response> => {
    const url = new URL(String(input), "http://server");
    asked.push(url.pathname.split("/").slice(4).join("/") + url.search);
    if (!url.pathname.endsWith("/log/tail")) return new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } });
    return Response.json(tail(entries, 2, Number(url.searchParams.get("before") ?? Infinity)));
  };
  const follower = new SessionFollower(new Everturn({ base: "http://server", fetch: fetch as never }), "s", (run) => run());
  follower.start();
  await expect.poll(() => follower.state.seq).toBe(entries.length);
  const shown = () => path(follower.state).map((message) => message.id);
  expect(shown()).toEqual(["t3.in", "t3.out", "t4.in", "t4.out"]);
  expect(follower.hasEarlier).toBe(true);
  await Promise.all([follower.loadEarlier(), follower.loadEarlier()]); // at once: loaded once
  expect(shown()).toHaveLength(8);
  await follower.loadEarlier();
  expect(shown()).toHaveLength(10);
  await follower.loadEarlier(); // there is nothing more
  expect(follower.hasEarlier).toBe(false);
  expect(asked.filter((request) => request.startsWith("log"))).toEqual(["log/tail", "log/tail?before=13", "log/tail?before=5"]);
  follower.pause();
});
