import { describe, expect, it } from "vitest";
import type { AgentView, SessionPage, SessionView } from "@everturn/client";
import { amount, buildChart, lastDays, roundUp } from "../../src/pages/charts";
import { findAgent, effectiveChoice, modelsOf } from "../../src/pages/agentChoice";
import { searchableText, makeSnippet, queryTerms } from "../../src/pages/search";
import { groupSessions, SessionList, shownLabels, topSession } from "../../src/pages/sessionList";
import { bestMatches, matchScore } from "../../src/pages/fuzzyMatch";

const agent = (name: string, model: string, models: string[] = [], is_default = false): AgentView => ({ name, description: "", model, tools: null, is_default, models, modes: [], any_model: false, folder: "", details: null });
const ALL = [agent("first", "m1", ["m2"], true), agent("other", "m3")];

describe("a choice of agent and model", () => {
  it("sends only what differs from what the server takes by itself", () => {
    expect(effectiveChoice(ALL, { agent: "", model: "" })).toEqual({ agent: "", model: "" });
    expect(effectiveChoice(ALL, { agent: "other", model: "m3" })).toEqual({ agent: "other", model: "" });
    expect(effectiveChoice(ALL, { agent: "first", model: "m2" })).toEqual({ agent: "first", model: "m2" });
    expect(effectiveChoice(ALL, { agent: "first", model: "m2" }, "first")).toEqual({ agent: "", model: "m2" });
  });

  it("forgets what is no more, and what another agent had", () => {
    expect(effectiveChoice(ALL, { agent: "gone", model: "m2" })).toEqual({ agent: "", model: "m2" });
    expect(effectiveChoice(ALL, { agent: "other", model: "m2" })).toEqual({ agent: "other", model: "" });
    expect(effectiveChoice(ALL, { agent: "", model: "m2" }, "other")).toEqual({ agent: "", model: "" });
  });

  it("names the models once, the agent's own first", () => {
    expect(modelsOf(agent("a", "m1", ["m2", "m1"]))).toEqual(["m1", "m2"]);
    expect(findAgent(ALL, "nobody")?.name).toBe("first");
    expect(findAgent([], "")).toBeUndefined();
  });
});

describe("what was found", () => {
  const shown = (text: string, query: string) => makeSnippet(text, queryTerms(query)).map((piece) => (piece.isHit ? `[${piece.text}]` : piece.text)).join("");
  it("is shown around the first of the words, all of them marked", () => {
    expect(shown("The rain in Spain", "RAIN spain")).toBe("The [rain] in [Spain]");
    expect(shown("x".repeat(100) + " needle " + "y".repeat(300), "needle")).toMatch(/^…x{39} \[needle\] y+…$/);
    expect(shown("天气很好", "天气")).toBe("[天气]很好");
  });
  it("takes signs for themselves", () => {
    expect(shown("a.b (c) a+b", "a.b")).toBe("[a.b] (c) a+b");
    expect(shown("<img onerror>", "<img")).toBe("[<img] onerror>");
    expect(shown("nothing here", "absent")).toBe("nothing here");
    expect(shown("", "x")).toBe("");
  });
  it("may stand in what a tool was asked and said", () => {
    const message = { id: "m", parent: null, role: "assistant" as const, parts: [
      { type: "tool" as const, call: "c", name: "look", arguments: '{"city":"Oslo"}', output: { text: "rain" } }, { type: "text" as const, text: "Wet." }] };
    expect(searchableText(message)).toBe('Wet. · look · {"city":"Oslo"} · rain');
  });
});

const session = (id: string, updated: number, more: Partial<SessionView> = {}): SessionView => ({ id, title: id, agent: "", by: "", created: 0, updated, leaf: null, is_awake: false, quarantined: "", parent: "", awaited_agent: "", pinned: false, archived: false, labels: [], is_renamed: false, is_listed: true, parameters: null, ...more });

function listOf(pages: SessionPage[]) {
  const inbox = { sessions: new Map<string, SessionView>(), isOpen: true, listeners: [] as (() => void)[], subscribe(_: string, listener: () => void) { this.listeners.push(listener); return () => {}; } };
  const cursors: string[] = [];
  const list = new SessionList(async (_, before) => { cursors.push(before); const page = pages[cursors.length - 1]; if (!page) throw new Error("away"); return page; }, inbox);
  return { list, cursors, tell: (session: SessionView) => { inbox.sessions.set(session.id, session); inbox.listeners.forEach((listener) => listener()); } };
}
const shown = (list: SessionList) => list.visible.value.map((session) => session.id).join(" ");

describe("the list of sessions", () => {
  it("leaves out a conversation of which only the open questions are seen", () => {
    const { list, tell } = listOf([]);
    tell(session("theirs", 2, { is_listed: false }));
    tell(session("mine", 1));
    expect(list.visible.value.map((one) => one.id)).toEqual(["mine"]);
  });
  it("groups by local day, pinned ones first", () => {
    const now = new Date(2026, 10, 18, 9);
    const at = (day: number, hour = 12) => new Date(2026, 10, day, hour).getTime() / 1000;
    const all = [session("a", at(18, 1)), session("b", at(17, 23)), session("c", at(11)), session("d", at(10)), session("e", 0), session("p", 0, { pinned: true })];
    expect(groupSessions(all, now).map(({ name, sessions }) => `${name} ${sessions.map(({ id }) => id).join("")}`)).toEqual(["pinned p", "today a", "yesterday b", "week c", "month d", "older e"]);
  });
  it("leaves archived ones out, and shows its own change until the inbox tells of it", async () => {
    const { list, tell } = listOf([{ sessions: [session("b", 2), session("a", 1)], next: "", waiting: [], pinned: [session("p", 0, { pinned: true })] }]);
    tell(session("b", 2));
    await list.loadMore();
    list.change(session("b", 2, { archived: true }));
    expect([shown(list), list.archived.value.map(({ id }) => id)]).toEqual(["a p", ["b"]]);
    tell(session("b", 2, { archived: false }));
    expect(shown(list)).toBe("b a p");
  });
  it("is read page by page until it is whole", async () => {
    const { list, cursors } = listOf([{ sessions: [session("c", 3), session("b", 2)], next: "p", waiting: [], pinned: [] }, { sessions: [session("a", 1)], next: "", waiting: [], pinned: [] }]);
    await list.loadMore();
    expect([shown(list), list.state.value]).toEqual(["c b", "idle"]);
    await Promise.all([list.loadMore(), list.loadMore()]);
    expect([shown(list), list.state.value, cursors]).toEqual(["c b a", "whole", ["", "p"]]);
    await list.loadMore();
    expect(cursors.length).toBe(2);
  });
  it("moves what moves to the top, and keeps what is below a turn out", async () => {
    const { list, tell } = listOf([{ sessions: [session("c", 3), session("b", 2)], next: "", waiting: [], pinned: [] }]);
    await list.loadMore();
    tell(session("b", 9, { title: "new title" }));
    tell(session("b-call", 10, { parent: "b" }));
    tell(session("c", 1));
    expect(shown(list)).toBe("b c");
    expect(list.get("b")?.title).toBe("new title");
    list.remove("b");
    expect(shown(list)).toBe("c");
  });
  it("says when it could not be read, and can be asked again", async () => {
    const { list } = listOf([]);
    await list.loadMore();
    expect(list.state.value).toBe("failed");
    await list.loadMore();
    expect(list.state.value).toBe("failed");
  });
  it("knows which session a sub-agent run belongs to", () => expect([topSession("s1-c.2-d"), topSession("s1")]).toEqual(["s1", "s1"]));
});

describe("what fits what was typed", () => {
  it("is ordered by how well", () => {
    expect(bestMatches(["Open settings", "Settings", "Rest", "Nothing"], "settings", (text) => text, 9)).toEqual(["Settings", "Open settings"]);
    expect(matchScore("Dark theme", "dt")).toBe(10);
    expect(matchScore("Do a very long and dull thing", "dt")).toBe(0);
    expect(matchScore("Dark theme", "theme dark")).toBe(50);
    expect(matchScore("Dark theme", "drk")).toBe(10);
    expect(matchScore("深色主题", "主题")).toBeGreaterThan(0);
    expect(bestMatches(["a", "b", "c"], "", (text) => text, 2)).toEqual(["a", "b"]);
  });
});

describe("the chart of what was used", () => {
  const used = (day: string, name: string, tokens: number) => ({ day, agent: name, spent: { steps: 1, calls: 2, usage: { input: tokens, output: 0, cost: null } } });
  it("has a bar for every day, and a piece for every agent", () => {
    const chart = buildChart([used("2026-11-15", "a", 30), used("2026-11-15", "b", 70), used("2026-11-16", "a", 5), used("2026-01-01", "a", 900)], "tokens", 3, "2026-11-16", "others");
    expect(chart.agents).toEqual(["a", "b"]);
    expect(chart.bars).toEqual([
      { day: "2026-11-14", pieces: [0, 0], total: 0 }, { day: "2026-11-15", pieces: [30, 70], total: 100 }, { day: "2026-11-16", pieces: [5, 0], total: 5 },
    ]);
    expect(chart.max).toBe(100);
  });
  it("puts those that used least together when there are many", () => {
    const many = Array.from({ length: 9 }, (_, index) => used("2026-11-16", `a${index}`, 10 - index));
    const chart = buildChart(many, "tokens", 1, "2026-11-16", "others");
    expect(chart.agents).toEqual(["a0", "a1", "a2", "a3", "a4", "others"]);
    expect(chart.bars[0]!.pieces.at(-1)).toBe(5 + 4 + 3 + 2);
  });
  it("knows its days and a round top", () => {
    expect(lastDays("2026-03-01", 3)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
    expect([0, 1, 3, 11, 240, 5001, 0.013].map(roundUp)).toEqual([1, 1, 5, 20, 250, 10000, 0.02]);
    expect(amount({ usage: { cost: null } }, "cost")).toBe(0);
  });
});

describe("the list at the start", () => {
  const open = (page: SessionPage) => {
    const listeners = new Set<() => void>();
    const inbox = { sessions: new Map<string, SessionView>(), isOpen: false, subscribe(topic: string, listener: () => void) { if (topic === "connection") listeners.add(listener); return () => listeners.delete(listener); } };
    let reads = 0;
    const list = new SessionList(async () => { reads += 1; return page; }, inbox as never);
    return { list, reads: () => reads, stand: (isOpen: boolean) => { inbox.isOpen = isOpen; for (const listener of [...listeners]) listener(); } };
  };
  it("is read once, when what moves can be heard", async () => {
    const { list, reads, stand } = open({ sessions: [session("a", 1)], next: "", waiting: [], pinned: [] });
    const first = list.loadMore();
    expect(reads()).toBe(0);
    stand(true);
    await first;
    expect([reads(), list.visible.value.length]).toEqual([1, 1]);
    stand(false);
    stand(true);
    await Promise.resolve();
    expect(reads()).toBe(2); // after a break: something may have changed
  });
});

it("shows two labels of a conversation, or one and the number of the others", () => {
  expect(shownLabels(undefined)).toEqual([]);
  expect(shownLabels(["a", "b"])).toEqual(["a", "b"]);
  expect(shownLabels(["a", "b", "c"])).toEqual(["a", "+2"]);
});
