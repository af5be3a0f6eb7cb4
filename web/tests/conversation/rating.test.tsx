// @vitest-environment happy-dom
/** Ratings: one click records a thumb, a dialog takes the reason, a second click can withdraw it; exports have them. */
import { emptySession, type SessionFollower } from "@everturn/client";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client, me } from "../../src/app/app";
import { language } from "../../src/app/texts";
import { toMarkdown } from "../../src/conversation/exportText";
import { RatingButtons } from "../../src/tree/ratingButtons";

let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  me.set({ user: "ada", role: "member", csrf: "" } as never);
});
afterEach(() => {
  render(null, root);
  root.remove();
  language.set("en");
  vi.restoreAllMocks();
});

const session = () => ({ id: "s", state: emptySession(), subscribe: () => () => {} }) as unknown as SessionFollower;
const draw = async (follower: SessionFollower) => {
  await act(async () => render(<RatingButtons session={follower} message="m" />, root));
};
const button = (name: string) => [...root.querySelectorAll("button")].find((one) => (one.getAttribute("aria-label") ?? one.textContent!) === name)!;
const press = async (follower: SessionFollower, name: string) => {
  await act(async () => button(name).click());
  await draw(follower);
  await vi.waitFor(() => expect(root.isConnected).toBe(true));
};
/** The server, as far as it is asked: the rating is in the log, and so in the state. */
const follow = (follower: SessionFollower) => vi.spyOn(client, "rate").mockImplementation(async (_, message, { rating, reason = "" }) => {
  follower.state.ratings.set(message, new Map(follower.state.ratings.get(message)).set("ada", { rating, reason }));
});

it("records a thumb down by one click, and then asks for the reason", async () => {
  const follower = session();
  const rate = follow(follower);
  await draw(follower);
  expect(button("Bad answer").getAttribute("aria-pressed")).toBe("false");
  await press(follower, "Bad answer");
  expect(rate).toHaveBeenLastCalledWith("s", "m", { rating: "down" });
  expect(button("Bad answer").getAttribute("aria-pressed")).toBe("true");
  await vi.waitFor(() => expect(root.querySelector("dialog")).not.toBeNull());
  await press(follower, "Not correct");
  await press(follower, "Save reason");
  expect(rate).toHaveBeenLastCalledWith("s", "m", { rating: "down", reason: "Not correct" });
  expect(root.querySelector("dialog")).toBeNull();
});

it("records a thumb up without a question, and a second click can withdraw it", async () => {
  const follower = session();
  const rate = follow(follower);
  await draw(follower);
  await press(follower, "Good answer");
  expect(root.querySelector("dialog")).toBeNull();
  await press(follower, "Good answer");
  await vi.waitFor(() => expect(root.querySelector("dialog")).not.toBeNull());
  await press(follower, "Remove rating");
  expect(rate).toHaveBeenLastCalledWith("s", "m", { rating: "" });
  expect(button("Good answer").getAttribute("aria-pressed")).toBe("false");
});

it("shows what others said, with invisible characters by name, and in Chinese", async () => {
  const follower = session();
  follow(follower);
  follower.state.ratings.set("m", new Map([["bob", { rating: "down" as const, reason: "a\u202eb" }], ["eve", { rating: "" as const, reason: "" }]]));
  await act(async () => language.set("zh"));
  await draw(follower);
  await press(follower, "回答不好");
  await vi.waitFor(() => expect(root.querySelector(".others")).not.toBeNull());
  expect(root.querySelectorAll(".others li")).toHaveLength(1);
  expect(root.textContent).not.toContain("\u202e");
  expect(root.textContent).toContain("bob");
});

it("writes ratings below their answers in an export", () => {
  const answer = { id: "m", role: "assistant", parts: [{ type: "text", text: "Paris." }] };
  const text = toMarkdown("x", [answer as never], [{ message: "m", by: "ada", rating: "down", reason: "</details>", at: 1 }]);
  expect(text).toContain("Paris.\n\n<details><summary>Rated down by ada</summary>");
});
