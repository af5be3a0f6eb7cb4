// @vitest-environment happy-dom
/** Compactions: the card, the progress, a failure, the command, the gauge and the panel. */
import { render, type VNode } from "preact";
import { act } from "preact/test-utils";
import { emptySession, type ContextReport, type LogEvent, type Message, type SessionFollower, type SummaryPart } from "@everturn/client";
import { apply } from "../../client/src/fold";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client, me } from "../../src/app/app";
import { language } from "../../src/app/texts";
import { CompactionCard } from "../../src/conversation/compactionCard";
import { GaugeButton } from "../../src/conversation/contextGauge";
import { ReportView } from "../../src/conversation/contextPanel";
import { compactFocus } from "../../src/conversation/send";
import { Transcript } from "../../src/conversation/transcript";
import { TurnFooter } from "../../src/conversation/turnFooter";

let root: HTMLElement;
beforeEach(() => {
  vi.stubGlobal("IntersectionObserver", class { observe() {} disconnect() {} });
  root = document.body.appendChild(document.createElement("div"));
  me.set({ role: "member", csrf: "" } as never);
});
afterEach(() => {
  render(null, root);
  root.remove();
  language.set("en");
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const draw = (node: VNode) => act(() => render(node, root));
const button = (name: string) => [...root.querySelectorAll("button")].find((found) => found.textContent!.trim() === name)!;
const press = (name: string) => act(() => button(name).click());

function follower(...events: LogEvent[]): SessionFollower {
  const state = emptySession();
  events.forEach((event, index) => apply(state, index + 1, event, () => {}));
  return { id: "s", state, subscribe: () => () => {} } as unknown as SessionFollower;
}

const summary: SummaryPart = {
  type: "summary", text: "Goal: **go** <img src=x onerror=alert(1)>", messages: 64, before: 182_000, after: 41_300, why: "command", focus: "the dates\u0007", by: "m",
  quotes: [{ message: "u", text: "<b>my words</b>" }], artifacts: ["write_file a.txt: completed"],
};
const notice: Message = { id: "n", parent: "u", role: "notice", parts: [summary], turn: "t" };
const said: LogEvent = { type: "TurnStarted", turn: "t", at: 1, input: { id: "u", parent: null, role: "user", turn: "t", parts: [{ type: "text", text: "hello" }] } };
const over = (turn: string, outcome: "completed" | "error"): LogEvent[] => [
  { type: "TurnFinishing", turn, at: 4, outcome },
  outcome === "completed" ? { type: "TurnCompleted", turn, at: 5 } : { type: "TurnFailed", turn, at: 5, problem: { kind: "summary", text: "no summary" } },
];
const compacted: LogEvent[] = [said, { type: "MessageAdded", turn: "t", message: notice }, ...over("t", "completed")];

it("says what was freed, and shows the summary as text", () => {
  draw(<CompactionCard part={summary} session={follower(...compacted)} message={notice} />);
  expect(root.textContent).toContain("Compacted: 182k → 41.3k tokens; 64 messages summarised");
  expect(root.textContent).not.toContain("Goal");
  expect(button("Show").getAttribute("aria-expanded")).toBe("false");
  press("Show");
  const region = root.querySelector("[role=region]")!;
  expect(region.id).toBe(button("Hide").getAttribute("aria-controls"));
  expect(region.querySelector("strong")!.textContent).toBe("go");
  expect(region.querySelector("img, b")).toBeNull();
  expect(region.textContent).toContain("<b>my words</b>");
  expect(region.textContent).toContain("write_file a.txt: completed");
  expect(region.textContent).toContain("Keeps: the dates");
  expect(region.textContent).not.toContain("\u0007");
});

it("says what was left out where there is no summary, and what was cleared", () => {
  draw(<CompactionCard part={{ ...summary, text: "", messages: 1 }} />);
  expect(root.textContent).toContain("1 message left out");
  expect(button("Undo")).toBeUndefined();
  draw(<CompactionCard part={{ type: "cleared", calls: ["a", "b"], before: 90_000, after: 60_000 }} />);
  expect(root.textContent).toContain("2 tool results cleared, 30k tokens; the model can read them with read_result");
  expect(button("Show")).toBeUndefined();
});

it("speaks Chinese", () => {
  language.set("zh");
  draw(<CompactionCard part={summary} />);
  expect(root.textContent).toContain("已压缩：18.2万 → 4.13万 个 token；已总结 64 条消息");
});

it("undoes a compaction from the message above it if something was said since, and loses nothing", async () => {
  HTMLDialogElement.prototype.showModal ??= function () {};
  const remove = vi.spyOn(client, "remove").mockResolvedValue(undefined);
  const select = vi.spyOn(client, "select").mockResolvedValue(undefined);
  const answer: LogEvent = { type: "AnswerStarted", turn: "t", message: { id: "a", parent: "n", role: "assistant", turn: "t" } };
  draw(<CompactionCard part={summary} session={follower(...compacted.slice(0, 2), answer, ...over("t", "completed"))} message={notice} />);
  press("Undo");
  await vi.waitFor(() => expect(root.querySelector("dialog")).not.toBeNull());
  expect(root.querySelector("dialog")!.textContent).toContain("The message below it stays on another branch.");
  expect(select).not.toHaveBeenCalled();
  await act(async () => root.querySelector<HTMLElement>("dialog .primary")!.click());
  expect(select).toHaveBeenCalledWith("s", { message: notice.parent });
  expect(remove).not.toHaveBeenCalled();
});

it("cannot be undone by a viewer, or while its turn runs", () => {
  draw(<CompactionCard part={summary} session={follower(...compacted.slice(0, 2))} message={notice} />);
  expect(button("Undo").disabled).toBe(true);
  me.set({ role: "viewer", csrf: "" } as never);
  draw(<CompactionCard key="viewer" part={summary} session={follower(...compacted)} message={notice} />);
  expect(button("Undo")).toBeUndefined();
});

const started: LogEvent = { type: "CompactionStarted", turn: "t", at: 1, number: 1, used: 97_000 };
const failed: LogEvent = { type: "CompactionFailed", turn: "t", at: 2, number: 1, problem: { kind: "summary", text: "the model wrote no summary\u0007" } };

it("has a progress line with Cancel while a summary is written", async () => {
  const cancel = vi.spyOn(client, "cancel").mockResolvedValue(undefined);
  draw(<TurnFooter session={follower(said, started)} id="t" />);
  expect(root.querySelector("[role=status]")!.textContent).toContain("Summarising earlier messages (97k tokens)");
  press("Cancel");
  expect(cancel).toHaveBeenCalledWith("s", "t");
});

it("says why a summary could not be written, while the turn goes on and after", () => {
  draw(<TurnFooter session={follower(said, started, failed)} id="t" />);
  expect(root.textContent).toContain("Earlier messages could not be summarisedthe model wrote no summary");
  expect(button("Cancel")).toBeUndefined();
  draw(<TurnFooter session={follower(said, started, failed, ...over("t", "completed"))} id="t" />);
  expect(root.textContent).toContain("the model wrote no summary");
  expect(root.textContent).not.toContain("\u0007");
});

it("forgets a failure once a summary is written", () => {
  const again: LogEvent[] = [{ ...started, number: 2 } as LogEvent, { type: "CompactionFinished", turn: "t", at: 3, number: 2 }];
  draw(<TurnFooter session={follower(said, started, failed, ...again)} id="t" />);
  expect(root.textContent).not.toContain("could not be summarised");
});

const command: LogEvent[] = [said, ...over("t", "completed"), { type: "TurnStarted", turn: "c", at: 3, parent: "u", options: { compact: "the dates" } }];
const transcript = (session: SessionFollower) =>
  draw(<Transcript session={session} messages={[...session.state.messages.values()]} marked={undefined} edited={null} onEdit={() => {}} />);

it("shows the progress of a command, which has no message of its own yet", () => {
  transcript(follower(...command, { ...started, turn: "c" } as LogEvent));
  expect(root.querySelector("[role=status]")!.textContent).toContain("Summarising earlier messages");
});

it("tries a command that failed again as the same command", async () => {
  const compact = vi.spyOn(client, "compact").mockResolvedValue({ session: "s", turn: "d" } as never);
  const rerun = vi.spyOn(client, "rerun");
  transcript(follower(...command, { ...started, turn: "c" } as LogEvent, { ...failed, turn: "c" } as LogEvent, ...over("c", "error")));
  expect(root.textContent).toContain("Earlier messages could not be summarised");
  await press("Try again");
  expect(compact).toHaveBeenCalledWith("s", { focus: "the dates" });
  expect(rerun).not.toHaveBeenCalled();
});

it("says that there was nothing to summarise", () => {
  transcript(follower(...command, ...over("c", "completed")));
  expect(root.textContent).toContain("There is nothing to summarise");
});

it.each([
  ["/compact", ""], ["/compact the dates", "the dates"], ["/compact\nline one\nline two", "line one\nline two"],
  ["/compacted", null], ["please /compact", null], ["/etc/hosts", null], ["", null],
])("reads %j as a command", (text, focus) => expect(compactFocus(text)).toBe(focus));

const report: ContextReport = {
  model: "m", window: 128_000, limit: 108_000, used: 12_400, share: 12_400 / 108_000, clear_at: 81_000, summarize_at: 97_200, policy: "auto", estimated: false, free: 95_600,
  compactions: 0, strikes: 0, paused: false, summarizing: false, cost: null,
  parts: [{ kind: "instructions", tokens: 2_400 }, { kind: "results", tokens: 10_000 }],
};
const gaugeLabel = (changes: Partial<ContextReport>) => {
  draw(<GaugeButton report={{ ...report, ...changes }} onClick={() => {}} />);
  return root.querySelector("button .visually-hidden")!.textContent;
};

it("says how full the context is", () => {
  expect(gaugeLabel({})).toBe("Context 12.4k of 108k tokens (11%)");
  expect(root.querySelector("svg")).not.toBeNull();
  expect(gaugeLabel({ used: 93_000, share: 93_000 / 108_000 })).toBe("Context 93k of 108k tokens (86%). Everturn will summarise older messages at 90%.");
  expect(root.querySelector("button")!.className).toContain("warn");
  expect(gaugeLabel({ used: 93_000, share: 93_000 / 108_000, policy: "off", summarize_at: 0 })).toBe("Context 93k of 108k tokens (86%)");
});

it("says only the tokens where the window is unknown", () => {
  expect(gaugeLabel({ window: 0, limit: 0, share: null })).toBe("Context 12.4k tokens");
  expect(root.querySelector("svg")).toBeNull();
  expect(root.querySelector(".amount")!.textContent).toBe("12.4k");
});

it("lists what fills the window, the thresholds and the policy", () => {
  draw(<ReportView report={report} />);
  const legend = [...root.querySelectorAll(".context-legend > li")].map((item) => [...item.querySelectorAll("span:not(.swatch)")].map((cell) => cell.textContent));
  expect(legend).toEqual([["Instructions", "2.4k", "2%"], ["Tool results", "10k", "8%"], ["Free", "95.6k", "75%"], ["Reserved for the answer", "20k", "16%"]]);
  expect(root.querySelector("[role=img]")!.getAttribute("aria-label")).toBe("What fills the context window: Instructions 2.4k, Tool results 10k, Free 95.6k, Reserved for the answer 20k");
  for (const text of ["m has a context window of 128k tokens; 20k are reserved for the answer.", "From 81k (75%): old tool results", "From 97.2k (90%): older messages are summarised", "Not compacted yet."]) expect(root.textContent).toContain(text);
  expect(root.textContent).not.toContain("Estimated");
});

it.each([
  [{ policy: "off", clear_at: 0, summarize_at: 0 }, "Automatic compaction is off"], [{ policy: "last_turns(3)", clear_at: 0, summarize_at: 0 }, "The model reads the last 3 turns only."],
  [{ paused: true }, "Summaries are paused"], [{ compactions: 2 }, "Compacted 2 times on this branch."], [{ summarizing: true }, "A summary is being written."],
  [{ window: 0, limit: 0, share: null, clear_at: 0, summarize_at: 0 }, "The context window of m is not known."], [{ estimated: true }, "Estimated"],
] as const)("says of %j: %s", (changes, text) => {
  draw(<ReportView report={{ ...report, ...changes }} />);
  expect(root.textContent).toContain(text);
});
