import { beforeEach, describe, expect, test, vi } from "vitest";
import { ServerError, emptySession, type Answered, type Claim, type Gate, type SessionFollower, type TurnState } from "@everturn/client";
import { me } from "../../src/app/app";
import { change } from "../../src/app/settings";
import { clientTools, toolOf, BROWSER_TOOLS } from "../../src/sandbox/tools";
import { serve } from "../../src/sandbox/serving";

const kept = new Map<string, string>();
let held = Promise.resolve(); // what a write waits for
vi.mock("../../src/sandbox/files", () => ({
  filesOf: async () => ({
    list: async () => [],
    read: async (path: string) => kept.get(path) ?? "",
    write: async (path: string, text: string) => (await held, kept.set(path, (kept.get(path) ?? "") + text), text.length),
    clear: async () => kept.clear(),
  }),
}));

const turnOf = (some: Partial<TurnState["options"]> = {}): TurnState =>
  ({ id: "t", phase: "parked", options: { clients: clientTools(new Set()), by: "ann", ...some }, calls: new Map(), gates: new Map() }) as unknown as TurnState;

beforeEach(() => {
  kept.clear();
  change({ browserTools: {} });
  me.set({ tenant: "x", user: "ann", role: "member", version: "", csrf: "" });
});

describe("what a message says", () => {
  test("is what there is, and how it is asked about", () =>
    expect(clientTools(new Set()).map((tool) => [tool.name, tool.execute])).toEqual([
      ["browser_js_eval", "ask_once"], ["list_directory", "auto"], ["read_file", "auto"], ["write_file", "ask_once"],
    ]));
  test("stands aside for the agent's own tools", () => {
    const names = clientTools(new Set(["read_file", "browser_js_eval", "browser_browser_js_eval"])).map((tool) => tool.name);
    expect(names).toEqual(["list_directory", "browser_read_file", "write_file"]);
  });
  test("is what the settings say", () => {
    change({ browserTools: { browser_js_eval: "off", write_file: "auto" } });
    expect(clientTools(new Set()).map((tool) => [tool.name, tool.execute])).toEqual([["list_directory", "auto"], ["read_file", "auto"], ["write_file", "auto"]]);
  });
  test("is in both languages", () => {
    for (const { label, about } of BROWSER_TOOLS) for (const text of [label.en, label.zh, about.en, about.zh]) expect(text).not.toBe("");
  });
});

describe("whose a call is", () => {
  test("ours, by its sender's declaration", () => {
    expect(toolOf(turnOf(), "read_file")).toBe("read_file");
    expect(toolOf(turnOf({ clients: clientTools(new Set(["read_file"])) }), "browser_read_file")).toBe("read_file");
  });
  test("not that of an editor, or of nobody", () => {
    expect(toolOf(turnOf({ clients: [{ name: "read_file", description: "In the editor.", schema: {} }] }), "read_file")).toBeNull();
    expect(toolOf(turnOf({ clients: [] }), "read_file")).toBeNull();
    expect(toolOf(turnOf(), "constructor")).toBeNull();
  });
  test("not another person's, and not one that is off", () => {
    expect(toolOf(turnOf({ by: "bob" }), "read_file")).toBeNull();
    change({ browserTools: { read_file: "off" } });
    expect(toolOf(turnOf(), "read_file")).toBeNull();
  });
});

/** A session with one call that waits, and a server that answers as it is told to. */
function world(claim: (given: Claim) => Promise<unknown>, answer: (given: Answered) => Promise<unknown>, some: Partial<Gate> = {}) {
  const state = emptySession();
  const turn = turnOf();
  const gate: Gate = { id: "g", turn: "t", call: "c", tool: "write_file", arguments: '{"path":"a","content":"x"}', hash: "h", kind: "client", ...some };
  turn.calls.set("c", { state: "running" } as never);
  turn.gates.set("g", { gate, opened: 0, verdict: null, answered: 0, claim: null, grant: null });
  state.turns.set("t", turn);
  state.gates.set("g", "t");
  const claims: Claim[] = [];
  const answers: Answered[] = [];
  const client = {
    claim: (_: string, __: string, given: Claim) => (claims.push(given), claim(given)),
    answer: (_: string, __: string, given: Answered) => (answers.push(given), answer(given)),
    gates: async () => ({ gates: [] }),
  };
  const session = { id: "s", state, client } as unknown as SessionFollower;
  return { session, claims, answers, turn };
}

const fine = async () => ({ until: 0 });
const refuse = (code: string, status = 409) => async () => { throw new ServerError(status, code, code); };

describe("a call", () => {
  test("is claimed with 32 bytes that nobody can guess, done, and answered with them", async () => {
    const { session, claims, answers } = world(fine, fine);
    serve(session, new AbortController().signal);
    await vi.waitFor(() => expect(answers.length).toBe(1));
    expect(claims[0]!.claim).toMatch(/^[0-9a-f]{64}$/);
    expect(answers[0]).toEqual({ hash: "h", result: '{"written":1}', failed: false, claim: claims[0]!.claim });
  });
  test.each(["claimed_otherwise", "gate_closed", "unknown_gate"])("is not done when its claim is refused: %s", async (code) => {
    const { session, claims, answers } = world(refuse(code), fine);
    const over = new AbortController();
    serve(session, over.signal)();
    await vi.waitFor(() => expect(claims.length).toBe(1));
    await new Promise((go) => setTimeout(go, 50));
    over.abort();
    expect([claims.length, answers.length, kept.size]).toEqual([1, 0, 0]);
  });
  test("is done once, however often its result has to be brought", async () => {
    let times = 0;
    const { session, claims, answers } = world(fine, async () => {
      times += 1;
      if (times === 1) throw new ServerError(0, "away", "away");
      if (times === 2) throw new ServerError(409, "not_claimed", "too late");
    });
    const look = serve(session, new AbortController().signal);
    look();
    await vi.waitFor(() => expect(answers.length).toBe(3), 5000);
    look();
    expect(kept.get("a")).toBe("x");
    expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(claims.length).toBe(2); // and once more, when its time was over
  });
  test("that somebody has begun and nobody may follow is left alone", async () => {
    const { session, claims, turn } = world(fine, fine, { once: true });
    turn.gates.get("g")!.claim = { by: "bob~1", until: 1 };
    serve(session, new AbortController().signal);
    await new Promise((go) => setTimeout(go, 30));
    expect(claims).toEqual([]);
  });
  test("that another tab has is waited for, and taken when its time is over", async () => {
    const { session, claims, turn } = world(fine, fine);
    turn.gates.get("g")!.claim = { by: "ann~1", until: Date.now() / 1000 + 0.2 };
    serve(session, new AbortController().signal);
    await new Promise((go) => setTimeout(go, 100));
    expect(claims).toEqual([]);
    await vi.waitFor(() => expect(claims.length).toBe(1), 3000);
  });
  test("whose result does not fit is told to have failed", async () => {
    const { session, answers } = world(fine, async (given) => { if (!given.failed) throw new ServerError(422, "answer_unfit", "no"); });
    serve(session, new AbortController().signal);
    await vi.waitFor(() => expect(answers.at(-1)?.failed).toBe(true));
  });
  test("whose claim is taken away while it is worked on brings no result", async () => {
    vi.useFakeTimers();
    try {
      let finish = () => {};
      held = new Promise<void>((go) => (finish = go));
      const { session, claims, answers } = world(async () => { if (claims.length > 1) throw new ServerError(409, "claimed_otherwise", "no"); }, fine);
      serve(session, new AbortController().signal);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(claims.length).toBeGreaterThan(1);
      finish();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(answers).toEqual([]);
    } finally {
      held = Promise.resolve();
      vi.useRealTimers();
    }
  });
});
