import { beforeEach, describe, expect, test, vi } from "vitest";
import { ServerError, emptySession, type AnswerGate, type ClaimGate, type Gate, type SessionFollower, type TurnState } from "@everturn/client";
import { me } from "../../src/app/app";
import { updateSettings } from "../../src/app/settings";
import { clientTools, browserToolFor, BROWSER_TOOLS } from "../../src/sandbox/tools";
import { runClientTools } from "../../src/sandbox/toolRunner";

const storedFiles = new Map<string, string>();
let writeBarrier = Promise.resolve(); // a write waits for this
vi.mock("../../src/sandbox/files", () => ({
  openFiles: async () => ({
    list: async () => [],
    read: async (path: string) => storedFiles.get(path) ?? "",
    write: async (path: string, text: string) => (await writeBarrier, storedFiles.set(path, (storedFiles.get(path) ?? "") + text), text.length),
    clear: async () => storedFiles.clear(),
  }),
}));

const turnOf = (options: Partial<TurnState["options"]> = {}): TurnState =>
  ({ id: "t", phase: "parked", options: { clients: clientTools(new Set()), by: "ann", ...options }, calls: new Map(), gates: new Map() }) as unknown as TurnState;

beforeEach(() => {
  storedFiles.clear();
  updateSettings({ browserTools: {} });
  me.set({ tenant: "x", user: "ann", role: "member", version: "", csrf: "" });
});

describe("what a message says", () => {
  test("is what there is, and how it is asked about", () =>
    expect(clientTools(new Set()).map((tool) => [tool.name, tool.approval])).toEqual([
      ["browser_js_eval", "ask"], ["list_directory", "auto"], ["read_file", "auto"], ["write_file", "ask"],
    ]));
  test("stands aside for the agent's own tools", () => {
    const names = clientTools(new Set(["read_file", "browser_js_eval", "browser_browser_js_eval"])).map((tool) => tool.name);
    expect(names).toEqual(["list_directory", "browser_read_file", "write_file"]);
  });
  test("is what the settings say", () => {
    updateSettings({ browserTools: { browser_js_eval: "off", write_file: "auto" } });
    expect(clientTools(new Set()).map((tool) => [tool.name, tool.approval])).toEqual([["list_directory", "auto"], ["read_file", "auto"], ["write_file", "auto"]]);
  });
  test("is in both languages", () => {
    for (const { label, about } of BROWSER_TOOLS) for (const text of [label.en, label.zh, about.en, about.zh]) expect(text).not.toBe("");
  });
});

describe("whose a call is", () => {
  test("ours, by its sender's declaration", () => {
    expect(browserToolFor(turnOf(), "read_file")).toBe("read_file");
    expect(browserToolFor(turnOf({ clients: clientTools(new Set(["read_file"])) }), "browser_read_file")).toBe("read_file");
  });
  test("not that of an editor, or of nobody", () => {
    expect(browserToolFor(turnOf({ clients: [{ name: "read_file", description: "In the editor.", schema: {} }] }), "read_file")).toBeNull();
    expect(browserToolFor(turnOf({ clients: [] }), "read_file")).toBeNull();
    expect(browserToolFor(turnOf(), "constructor")).toBeNull();
  });
  test("not another person's, and not one that is off", () => {
    expect(browserToolFor(turnOf({ by: "bob" }), "read_file")).toBeNull();
    updateSettings({ browserTools: { read_file: "off" } });
    expect(browserToolFor(turnOf(), "read_file")).toBeNull();
  });
});

/** A session with one waiting call, and a server that answers as given. */
function setUp(claim: (body: ClaimGate) => Promise<unknown>, answer: (body: AnswerGate) => Promise<unknown>, overrides: Partial<Gate> = {}) {
  const state = emptySession();
  const turn = turnOf();
  const gate: Gate = { id: "g", turn: "t", call: "c", tool: "write_file", arguments: '{"path":"a","content":"x"}', hash: "h", kind: "client", ...overrides };
  turn.calls.set("c", { state: "running" } as never);
  turn.gates.set("g", { gate, opened: 0, resolution: null, answered: 0, claim: null, grant: null });
  state.turns.set("t", turn);
  state.gates.set("g", "t");
  const claims: ClaimGate[] = [];
  const answers: AnswerGate[] = [];
  const client = {
    claim: (_: string, __: string, body: ClaimGate) => (claims.push(body), claim(body)),
    answer: (_: string, __: string, body: AnswerGate) => (answers.push(body), answer(body)),
    gates: async () => ({ gates: [] }),
  };
  const session = { id: "s", state, client } as unknown as SessionFollower;
  return { session, claims, answers, turn };
}

const fine = async () => ({ until: 0 });
const refuse = (code: string, status = 409) => async () => { throw new ServerError(status, code, code); };

describe("a call", () => {
  test("is claimed with 32 bytes that nobody can guess, done, and answered with them", async () => {
    const { session, claims, answers } = setUp(fine, fine);
    runClientTools(session, new AbortController().signal);
    await vi.waitFor(() => expect(answers.length).toBe(1));
    expect(claims[0]!.claim).toMatch(/^[0-9a-f]{64}$/);
    expect(answers[0]).toEqual({ hash: "h", result: '{"written":1}', failed: false, claim: claims[0]!.claim });
  });
  test.each(["claimed_otherwise", "gate_closed", "unknown_gate"])("is not done when its claim is refused: %s", async (code) => {
    const { session, claims, answers } = setUp(refuse(code), fine);
    const stop = new AbortController();
    runClientTools(session, stop.signal)();
    await vi.waitFor(() => expect(claims.length).toBe(1));
    await new Promise((go) => setTimeout(go, 50));
    stop.abort();
    expect([claims.length, answers.length, storedFiles.size]).toEqual([1, 0, 0]);
  });
  test("is done once, however often its result has to be brought", async () => {
    let times = 0;
    const { session, claims, answers } = setUp(fine, async () => {
      times += 1;
      if (times === 1) throw new ServerError(0, "away", "away");
      if (times === 2) throw new ServerError(409, "not_claimed", "too late");
    });
    const checkCalls = runClientTools(session, new AbortController().signal);
    checkCalls();
    await vi.waitFor(() => expect(answers.length).toBe(3), 5000);
    checkCalls();
    expect(storedFiles.get("a")).toBe("x");
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(claims.length).toBe(2); // and once more, after the claim has expired
  });
  test("that somebody has begun and nobody may follow is left alone", async () => {
    const { session, claims, turn } = setUp(fine, fine, { once: true });
    turn.gates.get("g")!.claim = { by: "bob~1", until: 1 };
    runClientTools(session, new AbortController().signal);
    await new Promise((go) => setTimeout(go, 30));
    expect(claims).toEqual([]);
  });
  test("that another tab has is waited for, and taken when its time is over", async () => {
    const { session, claims, turn } = setUp(fine, fine);
    turn.gates.get("g")!.claim = { by: "ann~1", until: Date.now() / 1000 + 0.2 };
    runClientTools(session, new AbortController().signal);
    await new Promise((go) => setTimeout(go, 100));
    expect(claims).toEqual([]);
    await vi.waitFor(() => expect(claims.length).toBe(1), 3000);
  });
  test("whose result does not fit is told to have failed", async () => {
    const { session, answers } = setUp(fine, async (body) => { if (!body.failed) throw new ServerError(422, "answer_unfit", "no"); });
    runClientTools(session, new AbortController().signal);
    await vi.waitFor(() => expect(answers.at(-1)?.failed).toBe(true));
  });
  test("whose claim is taken away while it is worked on brings no result", async () => {
    vi.useFakeTimers();
    try {
      let finish = () => {};
      writeBarrier = new Promise<void>((go) => (finish = go));
      const { session, claims, answers } = setUp(async () => { if (claims.length > 1) throw new ServerError(409, "claimed_otherwise", "no"); }, fine);
      runClientTools(session, new AbortController().signal);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(claims.length).toBeGreaterThan(1);
      finish();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(answers).toEqual([]);
    } finally {
      writeBarrier = Promise.resolve();
      vi.useRealTimers();
    }
  });
});
