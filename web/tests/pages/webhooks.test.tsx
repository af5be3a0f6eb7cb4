// @vitest-environment happy-dom
/** Webhooks: the form of an existing one sends what was changed, and nothing else. */
import { render } from "preact";
import { act } from "preact/test-utils";
import type { WebhookView } from "@everturn/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client, me } from "../../src/app/app";
import { changesOf, Webhooks } from "../../src/pages/admin/webhooks";

const row: WebhookView = { id: "webhook_1", url: "https://example.com/a", events: ["turn.completed"], description: "", created: 1, by: "ada", disabled: "gone", origin: "api", is_paused: false, failing: null };
let root: HTMLElement;
let rows: WebhookView[];
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  me.set({ user: "ada", role: "owner", csrf: "" } as never);
  rows = [row];
  vi.spyOn(client, "get").mockImplementation(async () => ({ webhooks: rows }) as never);
});
afterEach(() => {
  render(null, root);
  root.remove();
  vi.restoreAllMocks();
});
const draw = async () => {
  await act(async () => render(<Webhooks />, root));
  await act(async () => {});
};
const button = (text: string) => [...root.querySelectorAll("button")].find((each) => each.textContent!.trim() === text)!;
const press = (text: string) => act(async () => button(text).click());

it("says what was changed, so that a text does not resume a paused webhook", () => {
  expect(changesOf(row, { ...row })).toEqual({});
  expect(changesOf(row, { ...row, description: "x" })).toEqual({ description: "x" });
  expect(changesOf(row, { ...row, url: "https://example.com/b", events: ["turn.failed"], is_paused: true })).toEqual({ url: "https://example.com/b", events: ["turn.failed"], is_paused: true });
});

it("edits a webhook in place, keeps what was typed when it is refused, and shows no secret", async () => {
  const send = vi.spyOn(client, "send").mockRejectedValueOnce(new Error("refused")).mockImplementation(async () => row as never);
  await draw();
  await press("Edit");
  const url = root.querySelector<HTMLInputElement>("input[type=url]")!;
  expect(url.value).toBe(row.url);
  await act(async () => {
    url.value = "https://example.com/b";
    url.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const submit = async () => {
    await act(async () => void root.querySelector("form")!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })));
    await act(async () => new Promise((resolve) => setTimeout(resolve)));
  };
  await submit();
  expect(root.querySelector<HTMLInputElement>("input[type=url]")!.value).toBe("https://example.com/b");
  await submit();
  expect(send).toHaveBeenLastCalledWith("PATCH", "/api/webhooks/webhook_1", { url: "https://example.com/b" });
  expect(root.querySelector("form, dialog")).toBeNull();
});

it("does not call a webhook active whose last deliveries failed", async () => {
  rows = [{ ...row, disabled: "", failing: { count: 3, since: 1, problem: "no address" } }];
  await draw();
  expect(root.textContent).toMatch(/Failing.*The last 3 deliveries failed, since .*: no address\./);
  expect(root.textContent).not.toContain("Active");
});

it("does not edit a webhook of the configuration", async () => {
  rows = [{ ...row, origin: "config" }];
  await draw();
  expect(button("Edit")).toBeUndefined();
});
