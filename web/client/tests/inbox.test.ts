import { afterEach, expect, test, vi } from "vitest";
import { Everturn } from "../src/client";
import { InboxFollower } from "../src/inbox";
import type { GateView, InboxItem, SessionView } from "../src/types.gen";

afterEach(() => void vi.unstubAllGlobals());

const gate = (id: string, session: string) => ({ session, gate: { id } }) as unknown as GateView;
const session = (id: string, title = "") => ({ id, title }) as unknown as SessionView;

/** Web Locks, as far as needed: one tab holds the lock, the others wait in order. */
function locks(): Pick<LockManager, "request"> {
  const queues = new Map<string, Promise<unknown>>();
  const request = async (name: string, { signal }: { signal: AbortSignal }, run: () => Promise<void>) => {
    const before = queues.get(name) ?? Promise.resolve();
    let free = () => {};
    queues.set(name, before.then(() => new Promise<void>((resolve) => (free = resolve))));
    await before;
    try {
      if (signal.aborted) throw new Error("aborted");
      await run();
    } finally {
      free();
    }
  };
  return { request } as unknown as Pick<LockManager, "request">;
}

/** A server whose inbox sends what a test tells it to, to all connections. */
function server(first: InboxItem) {
  const listeners = new Set<ReadableStreamDefaultController<Uint8Array>>();
  const bytes = (item: InboxItem) => new TextEncoder().encode(`data: ${JSON.stringify(item)}\n\n`);
  const fetch = async (_: unknown, init?: RequestInit) => {
    const body = new ReadableStream<Uint8Array>({
      start(it) {
        listeners.add(it);
        it.enqueue(bytes(first));
        init?.signal?.addEventListener("abort", () => (listeners.delete(it), it.error(new Error("aborted"))));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const tell = (item: InboxItem) => listeners.forEach((it) => it.enqueue(bytes(item)));
  return { listeners, tell, tab: (lock?: Pick<LockManager, "request">) => new InboxFollower(new Everturn({ base: "http://server", fetch }), lock) };
}

test("eight tabs have one stream, know the same, and when the one that reads is closed another goes on", async () => {
  const { listeners, tell, tab } = server({ snapshot: { gates: [gate("g1", "s1")], awake: [session("s1")], next: "" } });
  const shared = locks();
  const tabs = Array.from({ length: 8 }, () => tab(shared));
  tabs.forEach((tab) => tab.start());
  await vi.waitFor(() => {
    expect(listeners.size).toBe(1);
    expect(tabs.map((tab) => tab.gates.map((open) => open.gate.id))).toEqual(Array(8).fill(["g1"]));
    expect(tabs.map((tab) => tab.isOpen)).toEqual(Array(8).fill(true));
  });

  tell({ session: session("s1", "Lunch"), waits: [gate("g2", "s1")] });
  await vi.waitFor(() => {
    expect(tabs.map((tab) => [tab.gates[0]!.gate.id, tab.sessions.get("s1")!.title])).toEqual(Array(8).fill(["g2", "Lunch"]));
  });

  const late = tab(shared);
  late.start();
  await vi.waitFor(() => expect(late.gates.map((open) => open.gate.id)).toEqual(["g2"]));

  tabs[0]!.pause();
  await vi.waitFor(() => expect([tabs[0]!.isReader, tabs[1]!.isReader, listeners.size]).toEqual([false, true, 1]));
  await vi.waitFor(() => expect(late.gates.map((open) => open.gate.id)).toEqual(["g1"])); // a new snapshot
  tell({ session: session("s2", "Dinner"), waits: [gate("g3", "s2")] });
  await vi.waitFor(() => expect(late.gates.map((open) => open.gate.id)).toEqual(["g1", "g3"]));
  expect(tabs[0]!.sessions.has("s2")).toBe(false);
  [...tabs, late].forEach((tab) => tab.pause());
  await vi.waitFor(() => expect(listeners.size).toBe(0));
});

test("without locks each tab reads for itself, while somebody looks", async () => {
  vi.stubGlobal("BroadcastChannel", undefined);
  const { listeners, tab } = server({ snapshot: { gates: [], awake: [session("s1")], next: "" } });
  const [first, second] = [tab(), tab()];
  first.start();
  second.start();
  await vi.waitFor(() => expect(listeners.size).toBe(2));
  first.client.suspend();
  await vi.waitFor(() => expect(listeners.size).toBe(1));
  first.client.resume();
  await vi.waitFor(() => expect(listeners.size).toBe(2));
  await vi.waitFor(() => expect(first.sessions.has("s1")).toBe(true));
  first.pause();
  second.pause();
});

test("a reader that was refused can be started again", async () => {
  let [status, requests] = [401, 0];
  const refused = async () => (requests++, status === 200 ? new Response("data: {}\n\n", { headers: { "content-type": "text/event-stream" } }) : Response.json({}, { status }));
  const inbox = new InboxFollower(new Everturn({ base: "http://server", fetch: refused }), locks());
  inbox.start();
  await vi.waitFor(() => expect([requests, inbox.isReader]).toEqual([1, false]));
  status = 200;
  inbox.start();
  await vi.waitFor(() => expect(inbox.isReader).toBe(true));
  inbox.pause();
});
