import { afterEach, describe, expect, test, vi } from "vitest";
import type { Files } from "../../src/sandbox/files";
import { MAX_RESULT, run, type RunResult } from "../../src/sandbox/run";

type Hostile = (port: MessagePort, gone: () => boolean) => void;

const fileCalls: unknown[][] = [];
const note = (op: string, answer: unknown) => async (...args: unknown[]) => (fileCalls.push([op, ...args]), answer as never);
const files: Files = { list: note("list", []), read: note("read", "text"), write: note("write", 1), clear: note("clear", undefined) };
const ports: MessagePort[] = [];

/** Run code in a frame that does what it wants with its port. */
function runInFrame(frame: Hostile, limit = 50, signal?: AbortSignal): Promise<RunResult> {
  let isGone = false;
  let loaded = () => {};
  const element = {
    addEventListener: (_: string, load: () => void) => (loaded = load),
    setAttribute: () => {},
    remove: () => (isGone = true),
    contentWindow: { postMessage: (_: unknown, __: string, [port]: [MessagePort]) => (ports.push(port), frame(port, () => isGone)) },
  };
  vi.stubGlobal("document", { createElement: () => element, body: { append: () => queueMicrotask(loaded) } });
  return run("return 1", limit, files, signal);
}

const sending = (...messages: unknown[]): Hostile => (port) => messages.forEach((message) => port.postMessage(message));
const file = (op: unknown, args: unknown, id: unknown = 1) => ({ kind: "files", id, op, given: args });
const done = { kind: "done", value: "1" };

afterEach(() => {
  ports.splice(0).forEach((port) => port.close());
  fileCalls.length = 0;
  vi.unstubAllGlobals();
});

describe("a frame that has turned hostile", () => {
  test("gets no more time by beginning again and again", async () => {
    let times = 0;
    const ran = await runInFrame((port, gone) => {
      const timer = setInterval(() => (gone() || times++ > 20 ? clearInterval(timer) : port.postMessage({ kind: "started" })), 200);
    });
    expect(ran.text).toContain("it was stopped after 50 ms");
    expect(times).toBeLessThan(20);
  });
  test("is given the code once", async () => {
    const received: unknown[] = [];
    const ready = { kind: "ready" };
    await runInFrame((port) => {
      port.onmessage = ({ data }) => received.push(data);
      sending(ready, ready, ready)(port, () => false);
      setTimeout(() => port.postMessage(done), 50);
    });
    expect(received).toEqual([{ code: "return 1", limit: 50 }]);
  });
  test("is believed once, and asks for nothing afterwards", async () => {
    const ran = await runInFrame(sending(done, { kind: "done", value: '"other"' }, { kind: "failed", why: "no" }, file("write", ["a", "b"])));
    await new Promise((go) => setTimeout(go, 30));
    expect(ran).toEqual({ failed: false, text: "1", console: [] });
    expect(fileCalls).toEqual([]);
  });
  test("has no say in a run beside it", async () => {
    const other = runInFrame((port) => setTimeout(() => port.postMessage({ kind: "done", value: '"mine"' }), 60));
    const first = runInFrame(sending({ kind: "done", value: '"theirs"', id: 2 }, { kind: "done", value: '"theirs"' }));
    expect([(await first).text, (await other).text]).toEqual(['"theirs"', '"mine"']);
  });
  test("changes no object of the page", async () => {
    const shapes = [JSON.parse('{"__proto__":{"spoilt":1},"kind":"line","line":"x"}'), { kind: "__proto__" }, { kind: "constructor" }];
    const ran = await runInFrame(sending(...shapes, { kind: "done", value: '{"__proto__":{"spoilt":1},"constructor":{"prototype":{"spoilt":1}}}' }));
    expect(ran.failed).toBe(false);
    expect(({} as { spoilt?: number }).spoilt).toBeUndefined();
  });
  test.each<[string, unknown]>([
    ["nothing", null], ["text", "done"], ["a number", 1], ["a list", ["done"]], ["a map", new Map([["kind", "done"]])],
    ["a date", new Date(0)], ["bytes", new Uint8Array(8)], ["a boxed kind", { kind: Object("done") }], ["a line that is none", { kind: "line", line: { length: 1e9 } }],
    ["a number too large for one", { kind: 10n ** 30n }], ["an error", new Error("done")],
  ])("is not understood when it says %s", async (_, message) => {
    expect(await runInFrame(sending(message, done))).toEqual({ failed: false, text: "1", console: [] });
  });
  test.each<[string, unknown, unknown]>([
    ["an operation there is not", "clear", [""]], ["one of an object", "constructor", [""]], ["one of a prototype", "__proto__", [""]],
    ["too few arguments", "write", ["a"]], ["too many", "read", ["a", "b"]], ["a path that is no text", "read", [{ toString: 1 }]],
    ["a list with a hole", "read", new Array(1)], ["a list with a hole at its end", "write", Object.assign(new Array(2), { 0: "a" })],
    ["a list that is all hole", "read", new Array(2 ** 32 - 1)], ["no list", "read", { length: 1, 0: "a" }],
  ])("reaches no file by %s", async (_, op, args) => {
    await runInFrame((port) => {
      port.postMessage(file(op, args));
      setTimeout(() => port.postMessage(done), 30);
    });
    expect(fileCalls).toEqual([]);
  });
  test("is cut short in all it says", async () => {
    const line = { kind: "line", line: "x".repeat(1e6) };
    const ran = await runInFrame(sending(...new Array(500).fill(line).slice(0, 20), ...new Array(1000).fill({ kind: "line", line: "y" }), { kind: "failed", why: "z".repeat(1e6) }));
    expect(ran.console.join("").length).toBeLessThanOrEqual(16 * 1024);
    expect(ran.console.length).toBeLessThanOrEqual(200);
    expect(ran.text.length).toBeLessThanOrEqual(4000);
  });
  test.each([["too long", `"${"x".repeat(6 * MAX_RESULT)}"`], ["no JSON", "undefined"], ["deep", "[".repeat(300_000)], ["no text", 7 as never]])(
    "is told to have failed when its result is %s", async (_, value) => {
      expect((await runInFrame(sending({ kind: "done", value }))).failed).toBe(true);
    });
  test("brings nothing, and writes nothing, when the turn is over", async () => {
    const stop = new AbortController();
    const ran = await runInFrame((port) => {
      stop.abort();
      sending(file("write", ["a", "b"]), done)(port, () => true);
    }, 50, stop.signal);
    await new Promise((go) => setTimeout(go, 30));
    expect(ran.text).toContain("the turn is over");
    expect(fileCalls).toEqual([]);
  });
});
