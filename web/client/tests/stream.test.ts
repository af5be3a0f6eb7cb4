import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Everturn } from "../src/client";
import { ServerError } from "../src/errors";
import { SessionFollower } from "../src/session";
import { follow, type StreamStatus, type MessageOutcome } from "../src/stream";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Answer = Response | Error | (() => Promise<Response>);
const TYPE = { "content-type": "text/event-stream; charset=utf-8" };
const streamOf = (text: string) => new Response(text, { headers: TYPE });
const errorResponse = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { code, message: code, where: "" } }, { status, headers });
const silentStream = (signal?: AbortSignal | null) =>
  new Response(new ReadableStream({ start: (it) => signal?.addEventListener("abort", () => it.error(new Error("aborted"))) }), { headers: TYPE });
const item = (value: object, id = "") => `${id && `id: ${id}\n`}data: ${JSON.stringify(value)}\n\n`;

/** A server that gives these responses one after the other and then stays silent; its requests, and when they came. */
function server(...answers: Answer[]) {
  const requests: { path: string; at: number; method: string; key: string }[] = [];
  const began = Date.now();
  let unauthenticated = 0;
  const client = new Everturn({
    base: "http://server",
    onUnauthenticated: () => void (unauthenticated += 1),
    fetch: async (input, init) => {
      const url = new URL(String(input));
      const key = new Headers(init?.headers).get("idempotency-key") ?? "";
      requests.push({ path: url.pathname.replace("/api/sessions/s", "") + url.search, at: Date.now() - began, method: init?.method ?? "GET", key });
      const next = answers.shift();
      if (next instanceof Error) throw next;
      return typeof next === "function" ? next() : (next ?? silentStream(init?.signal));
    },
  });
  return { client, requests, unauthenticated: () => unauthenticated };
}

const LOG = () => Response.json({ entries: [{ seq: 1, event: { type: "TitleSet", turn: "t", title: "One" } }], start: 1, seq: 1, leaf: null, title: "One" });
const title = (seq: number, text: string) => item({ seq, event: { type: "TitleSet", turn: "t", title: text } }, String(seq));

async function followSession(...answers: Answer[]) {
  const context = server(LOG(), ...answers);
  const session = new SessionFollower(context.client, "s");
  const statuses: string[] = [];
  session.subscribe("connection", () => statuses.push(session.connection));
  session.start();
  await vi.advanceTimersByTimeAsync(0);
  return { ...context, session, statuses };
}

test("after a break it goes on from the cursor, and waits longer each time nobody answers", async () => {
  const away = new TypeError("fetch failed");
  const { requests, session } = await followSession(streamOf(title(2, "Two")), away, away, away, streamOf(title(3, "Three")));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(requests.map((request) => request.path)).toEqual([
    "/log/tail", "/events?after=1", "/events?after=2", "/events?after=2", "/events?after=2", "/events?after=2", "/events?after=3",
  ]);
  const gaps = requests.slice(3, 6).map((request, index) => request.at - requests[index + 2]!.at);
  expect(gaps[0]).toBeGreaterThanOrEqual(125);
  expect(gaps[2]).toBeGreaterThanOrEqual(500);
  expect(session).toMatchObject({ connection: "open", state: { title: "Three" } });
});

test("a log that cannot be read yet is asked for again", async () => {
  const { client, requests } = server(new TypeError("fetch failed"), errorResponse(503, "away"), LOG());
  const session = new SessionFollower(client, "s");
  session.start();
  await vi.advanceTimersByTimeAsync(3000);
  expect(requests.map((request) => request.path)).toHaveLength(4);
  expect(session).toMatchObject({ connection: "open", state: { title: "One" } });
});

test("a server that asks to be left alone is left alone", async () => {
  const { requests } = await followSession(errorResponse(429, "too_much", { "retry-after": "7" }), errorResponse(503, "away", { "retry-after": "1" }));
  await vi.advanceTimersByTimeAsync(6900);
  expect(requests).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(2500);
  expect(requests).toHaveLength(4);
});

test.each([
  ["drain", 60], ["slow", 60], ["lost", 260], ["over", 260],
])("when the server ends a stream with %s, it goes on within %i ms", async (end, within) => {
  const { requests, session } = await followSession(streamOf(title(2, "Two") + item({ end })));
  await vi.advanceTimersByTimeAsync(within);
  expect(requests.at(-1)!.path).toBe("/events?after=2");
  expect(session.connection).toBe("open");
});

test("one that is always sent away at once comes back more and more seldom", async () => {
  const { requests } = await followSession(...Array.from({ length: 100 }, () => streamOf(item({ end: "drain" }))));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(requests.length).toBeLessThan(12);
});

test.each([
  ["erased", 404], ["revoked", 403],
])("a session that was %s is gone, and is not asked for again", async (end, status) => {
  const { requests, session } = await followSession(streamOf(item({ end })));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(requests).toHaveLength(2);
  expect(session).toMatchObject({ connection: "gone", problem: { status, code: end } });
});

test("one that nobody knows is gone; one whose reader nobody knows any more says so", async () => {
  const unknown = await followSession(errorResponse(404, "unknown_session"));
  expect(unknown.session).toMatchObject({ connection: "gone", problem: { status: 404 } });
  const { session, unauthenticated, requests } = await followSession(errorResponse(401, "not_recognised"));
  expect(session).toMatchObject({ connection: "gone", problem: { status: 401 } });
  expect(unauthenticated()).toBe(1);
  session.pause();
  session.start(); // after a login
  await vi.advanceTimersByTimeAsync(10);
  expect(session).toMatchObject({ connection: "open", problem: null });
  expect(requests.at(-1)!.path).toBe("/events?after=1");
});

test("a line that says nothing for too long, not even that it lives, is given up", async () => {
  const { requests, session, statuses } = await followSession();
  expect(session.connection).toBe("open");
  await vi.advanceTimersByTimeAsync(44_000);
  expect(requests).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1500);
  expect(requests).toHaveLength(3);
  expect(statuses).toContain("lost");
});

test("so is one that has said something and then says nothing more", async () => {
  const talks = (signal?: AbortSignal | null) =>
    new Response(new ReadableStream({ start: (it) => {
      it.enqueue(new TextEncoder().encode(title(2, "Two")));
      signal?.addEventListener("abort", () => it.error(new Error("aborted")));
    } }), { headers: TYPE });
  const stop = new AbortController();
  let opened = 0;
  void follow({ signal: stop.signal, onMessage: () => {}, open: async (_, signal) => (opened++, talks(signal)) });
  await vi.advanceTimersByTimeAsync(44_000);
  expect(opened).toBe(1);
  await vi.advanceTimersByTimeAsync(1500);
  expect(opened).toBe(2);
  stop.abort();
});

test("what has come with what was taken when it was paused is not taken, and comes again", async () => {
  const { client, requests } = server(LOG(), streamOf(title(2, "Two") + title(3, "Three")), streamOf(title(3, "Three")));
  const session = new SessionFollower(client, "s", (run) => run());
  session.subscribe("tree", () => session.state.seq === 2 && requests.length === 2 && session.pause());
  session.start();
  await vi.advanceTimersByTimeAsync(100);
  expect(session).toMatchObject({ connection: "paused", state: { title: "Two" } });
  session.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(requests.at(-1)!.path).toBe("/events?after=2");
  expect(session.state.title).toBe("Three");
});

test("a connection that is never answered is given up, too", async () => {
  const never = () => new Promise<Response>(() => {});
  const { requests } = await followSession(never);
  await vi.advanceTimersByTimeAsync(44_000);
  expect(requests).toHaveLength(2);
});

test("a page of a proxy in the place of a stream is nobody's answer", async () => {
  const { requests, session } = await followSession(new Response("<html>Log in to the hotel</html>", { headers: { "content-type": "text/html" } }));
  await vi.advanceTimersByTimeAsync(500);
  expect(requests).toHaveLength(3);
  expect(session.connection).toBe("open");
});

test("a message that cannot be taken in is asked for again, and nothing behind it is taken", async () => {
  const taken: string[] = [];
  const statuses: StreamStatus[] = [];
  const stop = new AbortController();
  let opened = 0;
  const done = follow({
    signal: stop.signal,
    open: async (after) => (opened++, streamOf(["1", "2", "3"].slice(Number(after)).map((id) => item({}, id)).join(""))),
    onStatus: (status) => void statuses.push(status),
    onMessage: ({ id }): MessageOutcome => {
      if (id === "2" && opened === 1) throw new Error("no");
      taken.push(id);
      return id === "3";
    },
  });
  await vi.advanceTimersByTimeAsync(1000);
  await done;
  expect(taken).toEqual(["1", "2", "3"]);
  expect(statuses).toEqual(["connecting", "open", "waiting", "connecting", "open", "closed"]);
});

test("while nobody looks there is no connection, and whoever starts one meanwhile has it when somebody looks", async () => {
  const { client, session, requests } = await followSession(streamOf(title(2, "Two")));
  client.suspend();
  expect(session.connection).toBe("paused");
  const other = new SessionFollower(client, "s");
  other.start();
  await vi.advanceTimersByTimeAsync(100_000);
  expect(requests).toHaveLength(2);
  session.pause();
  client.resume();
  await vi.advanceTimersByTimeAsync(0);
  expect(requests.map((request) => request.path).slice(2)).toEqual(["/log/tail"]);
  expect(session.connection).toBe("paused");
});

test("a send whose answer was lost is sent again with the same key; one that was refused is not", async () => {
  const { client, requests } = server(new TypeError("fetch failed"), errorResponse(502, "away"), Response.json({ turn: "t" }), errorResponse(409, "busy"));
  const sent = client.sendMessage("s", { text: "Hello" }, "k");
  await vi.advanceTimersByTimeAsync(5000);
  expect(await sent).toEqual({ turn: "t" });
  expect(requests.map((request) => `${request.method} ${request.key}`)).toEqual(["POST k", "POST k", "POST k"]);
  await expect(client.sendMessage("s", { text: "Hello" })).rejects.toBeInstanceOf(ServerError);
  expect(requests).toHaveLength(4);
});

test("a login that was renewed brings another token for changes, once", async () => {
  const { client, requests } = server(errorResponse(403, "csrf"), Response.json({ csrf: "c2" }), new Response(null, { status: 204 }));
  await client.select("s", { message: null });
  expect(requests.map((request) => `${request.method} ${request.path}`)).toEqual(["POST /select", "GET /api/me", "POST /select"]);
});
