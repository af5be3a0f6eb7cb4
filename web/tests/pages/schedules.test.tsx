// @vitest-environment happy-dom
/** Schedules: cron expressions in words and as a form, wall-clock times of zones, and what is private to others. */
import { render, type VNode } from "preact";
import { act } from "preact/test-utils";
import type { ScheduleView } from "@everturn/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { agents, client, me } from "../../src/app/app";
import { language } from "../../src/app/texts";
import { countByUser } from "../../src/pages/admin/schedules";
import { textOfWhen, whenOfText } from "../../src/pages/admin/when";
import { ScheduleCard } from "../../src/pages/schedules/card";
import { cronOf, parseCron, planOf } from "../../src/pages/schedules/cron";
import { ScheduleForm } from "../../src/pages/schedules/form";
import { byNextTime } from "../../src/pages/schedules/schedules";
import { cronWords } from "../../src/pages/schedules/words";
import { fromWallClock, toWallClock } from "../../src/pages/schedules/zonedTime";
import { useTexts } from "../../src/locales/schedules.gen";

let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  me.set({ user: "ada", role: "owner", csrf: "" } as never);
  agents.set({ agents: [{ name: "assistant", is_default: true }] } as never);
});
afterEach(() => {
  render(null, root);
  root.remove();
  language.set("en");
  vi.restoreAllMocks();
});

const draw = async (node: VNode) => {
  await act(async () => render(node, root));
  await act(async () => {});
};
const view = (more: Partial<ScheduleView>): ScheduleView => ({
  id: "report", text: "Write the report.", cron: "30 8 * * 1-5", at: 0, timezone: "Europe/Berlin", agent: "assistant", session: "", catch_up: "skip", max_catch_up: 10, overlap: "skip",
  until: 0, metadata: { a: 1 }, priority: "background", by: "ada", created: 1_700_000_000, origin: "api", is_paused: false, due: 1_900_000_000, started: 0, missed: 0, runs: [], ...more,
});
const buttons = () => [...root.querySelectorAll("button")].map((button) => button.textContent!.trim()).filter(Boolean);

describe("cron", () => {
  let texts: ReturnType<typeof useTexts>;
  const Texts = () => { texts = useTexts(); return null; };

  it.each([
    ["* * * * *", "Every minute", "每分钟"],
    ["*/15 * * * *", "Every 15 minutes", "每 15 分钟"],
    ["0 * * * *", "Every hour, on the hour", "每小时整点"],
    ["5 */6 * * *", "Every 6 hours, 5 minutes past", "每 6 小时的第 5 分钟"],
    ["0 9 * * *", "Every day at 9:00 AM", "每天 09:00"],
    ["0 9,17 * * *", "Every day at 9:00 AM and 5:00 PM", "每天 09:00和17:00"],
    ["30 8 * * 1-5", "Monday to Friday at 8:30 AM", "周一至周五 08:30"],
    ["0 10 * * 0,6", "Every Sunday and Saturday at 10:00 AM", "每星期日和星期六 10:00"],
    ["0 10 * * 7", "Every Sunday at 10:00 AM", "每星期日 10:00"],
    ["15 6 1 * *", "On day 1 of every month at 6:15 AM", "每月 1 日 06:15"],
    ["0 0 24 12 *", "Every year on December 24 at 12:00 AM", "每年12月24日 00:00"],
  ])("says %s in words", async (expression, english, chinese) => {
    await draw(<Texts />);
    expect(cronWords(expression, texts)).toBe(english);
    await act(async () => language.set("zh"));
    expect(cronWords(expression, texts)).toBe(chinese);
  });

  it.each(["*/7 * * * *", "0 9 1 * 1", "0 9 L * *", "1,2 9 * * *", "0 9 * jan *", "61 * * * *", "0 24 * * *", "0 9 0 * *", "0 9 * *", "", "0 9-8 * * *", "a b c d e"])("leaves %j as it is", (expression) => {
    expect(parseCron(expression)).toBeNull();
    expect(cronOf(planOf(expression))).toBe(expression.trim());
  });

  it.each(["7 * * * *", "0 9 * * *", "30 8 * * 1-5", "0 10 * * 0", "15 6 31 * *", "*/15 * * * *", "0 0 24 12 *", "0 9,17 * * *"])("gives %s back from its form", (expression) => {
    expect(cronOf(planOf(expression))).toBe(expression);
  });
});

describe("wall-clock times", () => {
  it.each([
    ["2030-01-15T09:00", "Europe/Berlin", "2030-01-15T08:00:00Z"],
    ["2030-07-15T09:00", "Europe/Berlin", "2030-07-15T07:00:00Z"],
    ["2030-01-15T09:00", "Asia/Kolkata", "2030-01-15T03:30:00Z"],
    ["2030-03-31T01:30", "Europe/Berlin", "2030-03-31T00:30:00Z"],
    ["2030-03-31T03:30", "Europe/Berlin", "2030-03-31T01:30:00Z"],
  ])("%s in %s", (text, zone, iso) => {
    expect(fromWallClock(text, zone)).toBe(Date.parse(iso) / 1000);
    expect(toWallClock(Date.parse(iso) / 1000, zone)).toBe(text);
  });
  it("has no time for none", () => expect([fromWallClock("", "UTC"), toWallClock(0, "UTC")]).toEqual([0, ""]));
});

it("sorts by the next time, then the paused ones, then those that have ended", () => {
  const rows = [view({ id: "ended", due: 0 }), view({ id: "paused", is_paused: true }), view({ id: "late", due: 20 }), view({ id: "soon", due: 10 })];
  expect(byNextTime(rows).map((row) => row.id)).toEqual(["soon", "late", "paused", "ended"]);
});

it("counts schedules by user", () => {
  const rows = [view({ started: 2 }), view({ id: "b", is_paused: true, missed: 1 }), view({ id: "c", by: "", due: 0 })];
  expect(countByUser(rows)).toEqual([
    { user: "", all: 1, active: 0, started: 0, missed: 0 },
    { user: "ada", all: 2, active: 1, started: 2, missed: 1 },
  ]);
});

it("shows an owner a schedule of another person without its message and its conversations", async () => {
  const run = { planned: 1, at: 1, session: "session_1", turn: "turn_1", outcome: "started" as const, problem: "" };
  await draw(<ScheduleCard view={view({ by: "bob", text: "", runs: [run, { ...run, planned: 2, turn: "", outcome: "refused", problem: "bob is not active" }] })} onEdit={() => {}} reload={() => {}} />);
  expect(root.textContent).toContain("private to its author");
  expect(buttons()).toEqual(["Pause", "Delete"]);
  vi.spyOn(client, "send").mockResolvedValue({ times: [], problem: "" });
  const get = vi.spyOn(client, "get");
  await act(async () => root.querySelector("summary")!.click());
  await act(async () => { root.querySelector("details")!.dispatchEvent(new Event("toggle")); });
  expect(root.querySelectorAll(".runs > li").length).toBe(2);
  expect(root.textContent).toContain("bob is not active");
  expect(root.querySelector(".runs a")).toBeNull();
  expect(get).not.toHaveBeenCalled();
});

it("offers a member no change of what is configured", async () => {
  me.set({ user: "ada", role: "member", csrf: "" } as never);
  await draw(<ScheduleCard view={view({ by: "", origin: "config" })} onEdit={() => {}} reload={() => {}} />);
  expect(buttons()).toEqual([]);
  expect(root.textContent).toContain("Set in everturn.toml.");
});

it("keeps what the form does not show when a schedule is edited", async () => {
  const send = vi.spyOn(client, "send").mockImplementation((method) => Promise.resolve((method === "PUT" ? view({}) : { times: [1_900_000_000], problem: "" }) as never));
  const done = vi.fn();
  await draw(<ScheduleForm view={view({ until: 1_950_000_000, priority: "interactive" })} onDone={done} onCancel={() => {}} />);
  const time = root.querySelector<HTMLInputElement>("input[type=time]")!;
  expect(time.value).toBe("08:30");
  await act(async () => { time.value = "10:15"; time.dispatchEvent(new Event("input", { bubbles: true })); });
  await act(async () => { root.querySelector("form")!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })); });
  expect(send).toHaveBeenCalledWith("PUT", "/api/schedules/report", expect.objectContaining({
    text: "Write the report.", cron: "15 10 * * 1-5", at: 0, timezone: "Europe/Berlin", until: 1_950_000_000, priority: "interactive", metadata: { a: 1 }, catch_up: "skip", overlap: "skip",
  }));
  expect(done).toHaveBeenCalledOnce();
});

it("reads the condition of a hook by lines", () => {
  const when = { action: ["opened", "reopened"], "issue.number": ["*"] };
  expect(textOfWhen(when)).toBe("action = opened, reopened\nissue.number = *");
  expect(whenOfText(textOfWhen(when))).toEqual(when);
  expect(whenOfText("  \nref\na = ")).toEqual({ ref: ["*"], a: ["*"] });
});
