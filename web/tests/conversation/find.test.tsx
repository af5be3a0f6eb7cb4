// @vitest-environment happy-dom
/** Find in conversation: which messages match, and how the bar moves between them. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { emptySession, type Message, type SessionFollower } from "@everturn/client";
import { afterEach, expect, it, vi } from "vitest";
import { client } from "../../src/app/app";
import { FindBar } from "../../src/conversation/findBar";
import { findMessages, findRanges } from "../../src/conversation/findText";

const message = (id: string, ...parts: object[]) => ({ id, role: "user", parts }) as unknown as Message;
const text = (words: string) => ({ type: "text", text: words });
const MESSAGES = [
  message("a", text("Where is the Café?")),
  message("b", { type: "tool", name: "search", arguments: { query: "cafe" }, output: { text: "3 places" } }),
  { ...message("c", text("cafe")), hidden: true } as Message,
  message("d", text("Nothing here")),
];

afterEach(() => {
  document.body.replaceChildren();
  location.hash = "";
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it("finds texts, calls and results without regard to case and accents, and no hidden message", () => {
  expect(findMessages(MESSAGES, " CAFE ")).toEqual(["a", "b"]);
  expect(findMessages(MESSAGES, "places")).toEqual(["b"]);
  expect(findMessages(MESSAGES, "  ")).toEqual([]);
});

it("returns the ranges of a text", () => {
  document.body.innerHTML = "<p>one <b>One</b> two one</p>";
  expect(findRanges(document.body, "one").map(String)).toEqual(["one", "One", "one"]);
});

it("shows the newest match first, and Enter moves on in a circle", async () => {
  vi.useFakeTimers();
  vi.spyOn(client, "allMessages").mockResolvedValue({ messages: MESSAGES } as never);
  const session = { id: "s", state: emptySession(), subscribe: () => () => {} } as unknown as SessionFollower;
  const root = document.body.appendChild(document.createElement("div"));
  await act(async () => render(<FindBar session={session} onClose={() => {}} />, root));
  const input = root.querySelector("input")!;
  await act(async () => {
    input.value = "cafe";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await act(async () => void vi.advanceTimersByTime(300));
  await act(async () => {});
  const count = () => root.querySelector(".count")!.textContent;
  const press = (key: string, shiftKey = false) => act(async () => void input.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true })));
  expect([count(), location.hash]).toEqual(["2 of 2", "#/s/s/m/b"]);
  await press("Enter");
  expect([count(), location.hash]).toEqual(["1 of 2", "#/s/s/m/a"]);
  await press("Enter", true);
  expect(count()).toBe("2 of 2");
  await press("Escape");
  expect(location.hash).toBe("#/s/s");
});
