/** The whole example in a page, with a recorded stream of a real server. */
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Everturn, SseParser, SessionFollower, fold, isOver, path, textOf, type StreamItem, type LogEvent } from "@everturn/client";
import sse from "../../../client/tests/recorded.sse?raw";
import { convert } from "../src/convert";
import { Chat } from "../src/main";

const messages: { item: StreamItem; text: string }[] = [];
new SseParser(({ id, data }) => void messages.push({ item: JSON.parse(data) as StreamItem, text: `id: ${id}\ndata: ${data}\n\n` })).feed(sse);
const at = (is: (item: StreamItem) => boolean | undefined) => messages.findIndex(({ item }) => is(item)) + 1;
const event = (type: LogEvent["type"]) => at((item) => item.event?.type === type);

/** A server that sends as much of the recorded stream as a test allows, and records the requests it gets. */
function server() {
  const requests: { path: string; body: unknown }[] = [];
  let [written, read] = [0, 0];
  let wake = () => {};
  const next = async () => {
    while (read >= written) await new Promise<void>((resolve) => (wake = resolve));
    const text = messages.slice(read, written).map((message) => message.text).join("");
    read = written;
    return { value: new TextEncoder().encode(text), done: false };
  };
  const fetch = async (input: unknown, init?: RequestInit) => {
    const path = String(input).replace("/api/sessions/s", "");
    const headers = { get: () => "text/event-stream" };
    if (init?.method === "POST") requests.push({ path, body: JSON.parse(String(init.body ?? "null")) });
    const json = async () => (path.startsWith("/log") ? { entries: [], is_whole: true } : {});
    return { ok: true, status: 200, headers, json, body: { getReader: () => ({ read: next }) } } as unknown as Response;
  };
  const session = new SessionFollower(new Everturn({ token: "t", fetch }), "s");
  const sendUntil = (until: number) => act(async () => {
    written = until;
    wake();
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
  return { session, requests, sendUntil };
}

let root: Root;
beforeEach(() => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  document.body.innerHTML = "<main></main>";
  root = createRoot(document.querySelector("main")!);
});
afterEach(() => act(async () => root.unmount()));

const page = () => document.querySelector("main")!;
const button = (name: string) => [...page().querySelectorAll("button")].filter((element) => element.textContent === name);

test("a session is drawn as it streams, asks, is allowed, goes on and has versions", async () => {
  const { session, requests, sendUntil } = server();
  await act(async () => root.render(<Chat session={session} />));

  const firstText = at((item) => item.delta?.type === "TextDelta");
  await sendUntil(firstText + 8);
  const live = session.state.turns.values().next().value!.live;
  expect(page().querySelector(".person")!.textContent).toBe("Look, and write to Bob 👋");
  expect(page().querySelector("details")!.textContent).toContain(live[0]!.text);
  expect(page().querySelector(".answer")!.textContent).toContain(live[1]!.text.trimEnd());

  await sendUntil(event("GateOpened"));
  expect([...page().querySelectorAll(".call code")].map((element) => element.textContent)).toEqual([
    expect.stringContaining("the 🕰️"), expect.stringContaining("午餐🍜"),
  ]);
  expect(page().querySelectorAll("[role=alert]")).toHaveLength(1);
  await act(async () => button("allow-once")[0]!.click());
  const [gate] = [...session.state.turns.values()].flatMap((turn) => [...turn.gates.values()]);
  expect(requests).toEqual([{ path: `/gates/${gate!.gate.id}/answer`, body: { hash: gate!.gate.hash, allow: "once" } }]);

  await act(async () => button("Stop")[0]!.click());
  expect(requests[1]).toEqual({ path: `/turns/${gate!.gate.turn}/cancel`, body: {} });

  await sendUntil(messages.length);
  expect([...session.state.turns.values()].every(isOver)).toBe(true);
  expect(page().querySelectorAll("[role=alert]")).toHaveLength(0);
  for (const message of path(session.state)) {
    const firstParagraph = textOf(message.parts).trim().split("\n\n")[0]!;
    expect(page().textContent).toContain(firstParagraph);
  }
  expect(page().textContent).toMatch(/‹[12]\/2›/);
  await act(async () => [...button("‹"), ...button("›")].find((element) => !element.disabled)!.click());
  expect(requests.some((request) => request.path === "/select")).toBe(true);
  await act(async () => button("Again").at(-1)!.click());
  expect(requests.some((request) => request.path.endsWith("/rerun"))).toBe(true);
});

test("a denial carries what was said, and a gate that nobody answered in time is past", () => {
  const entries = messages.flatMap(({ item }) => (item.event ? [{ seq: item.seq!, event: item.event }] : []));
  const opened = entries.findIndex(({ event }) => event.type === "GateOpened");
  const gate = (entries[opened]!.event as Extract<LogEvent, { type: "GateOpened" }>).gate;
  const calls = (...more: LogEvent[]) => {
    const state = fold([...entries.slice(0, opened + 1), ...more.map((event, at) => ({ seq: 1000 + at, event }))]);
    const parts = convert(state).messages.flatMap(({ message }) => [...message.content] as { type: string; toolCallId?: string; approval?: object }[]);
    return parts.find((part) => part.toolCallId === gate.call)!;
  };
  const base = { turn: gate.turn, call: gate.call };
  expect(calls().approval).toMatchObject({ id: gate.id, options: [{ id: "once" }, { id: "deny" }] });
  const denied = calls(
    { type: "GateResolved", ...base, gate: gate.id, resolution: { allowed: false, reason: "Not now" } },
    { type: "CallFinished", ...base, state: "denied", output: { text: "Not now" } },
  );
  expect(denied).toMatchObject({ approval: { approved: false, reason: "Not now" }, result: "Not now", isError: true });
  const past = calls({ type: "CallFinished", ...base, state: "cancelled", output: { text: "cancelled" } });
  expect(past.approval).toMatchObject({ resolution: "cancelled" });
});
