// @vitest-environment happy-dom
/** Sharing: the header, the dialog, links, notices of administrators, temporary chats and export. */
import { render, type VNode } from "preact";
import { act } from "preact/test-utils";
import { emptySession, ServerError, type Message, type SessionFollower, type ShareView, type SharingView } from "@everturn/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client, mayWrite, me, readOnlySessions } from "../../src/app/app";
import { Notices } from "../../src/app/notices";
import { hrefFor, parseRoute } from "../../src/app/route";
import { language } from "../../src/app/texts";
import { toMarkdown } from "../../src/conversation/exportText";
import { ConversationHeader } from "../../src/conversation/header";
import { OpenLink } from "../../src/conversation/openLink";
import { ShareDialog } from "../../src/conversation/shareDialog";

let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  me.set({ user: "ada", role: "member", csrf: "" } as never);
});
afterEach(() => {
  render(null, root);
  root.remove();
  readOnlySessions.set(new Set());
  language.set("en");
  vi.restoreAllMocks();
});

const draw = async (node: VNode) => {
  await act(async () => render(node, root));
  await act(async () => {});
};
const button = (name: string) => [...root.querySelectorAll("button")].find((found) => (found.getAttribute("aria-label") ?? found.textContent!).trim() === name)!;
const press = async (name: string) => {
  await act(async () => button(name).click());
  await act(async () => {}); // what it asked of the server
};
const choose = (select: HTMLSelectElement, value: string) => act(async () => {
  select.value = value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
});
const share = (more: Partial<ShareView>): ShareView => ({ id: "share_1", kind: "user", name: "bob", level: "read", by: "ada", created: 1000, expires: 0, reason: "", via: "", ...more });
const own = (...shares: ShareView[]): SharingView => ({ author: "ada", level: "manage", shares, temporary_until: 0 });
const follower = (): SessionFollower => ({ id: "s", state: Object.assign(emptySession(), { title: "Lunch" }), subscribe: () => () => {} }) as unknown as SessionFollower;

const header = async (sharing: SharingView) => {
  vi.spyOn(client, "sharing").mockResolvedValue(sharing);
  vi.spyOn(client, "session").mockResolvedValue({ agent: "" } as never);
  await draw(<ConversationHeader session={follower()} />);
};

it("says nothing of a private conversation, and offers to share it", async () => {
  await header(own());
  expect(root.querySelector(".badge")).toBeNull();
  expect(button("Share")).toBeTruthy();
  expect(mayWrite("s")).toBe(true);
});

it("says with how many it is shared; a link alone is said, and an administrator is not counted", async () => {
  await header(own(share({}), share({ id: "link_1", kind: "link", name: "" }), share({ id: "admin_1", kind: "admin", expires: 2000 })));
  expect(root.querySelector(".badge")!.textContent).toBe("Shared with 1");
  await act(async () => render(null, root));
  await header(own(share({ id: "link_1", kind: "link", name: "" })));
  expect(root.querySelector(".badge")!.textContent).toBe("Shared by a link");
});

it("lets a reader read, and write again once the author says so", async () => {
  await header({ author: "eve", level: "read", shares: [], temporary_until: 0 });
  expect(root.querySelector(".badge")!.textContent).toBe("Read only");
  expect(mayWrite("s")).toBe(false);
  expect(mayWrite("another")).toBe(true);
  await act(async () => render(null, root));
  await header({ author: "eve", level: "write", shares: [], temporary_until: 0 });
  expect(mayWrite("s")).toBe(true);
});

it("says when a temporary chat is erased", async () => {
  await header({ ...own(), temporary_until: 2_000_000_000 });
  expect(root.querySelector(".badge")!.textContent).toBe("Temporary");
});

it("shares with a person or a group, lists who has access, and revokes it", async () => {
  vi.spyOn(client, "people").mockResolvedValue({ people: [{ id: "ada", name: "" }, { id: "bob", name: "Bob" }] });
  const shared = vi.spyOn(client, "share").mockResolvedValue(share({}));
  const revoked = vi.spyOn(client, "unshare").mockResolvedValue(undefined);
  vi.spyOn(client, "sharing").mockResolvedValue(own(share({})));
  const onChange = vi.fn();
  await draw(<ShareDialog session="s" sharing={own(share({ kind: "admin", name: "eve", reason: "a complaint", expires: 2_000_000_000 }))} onChange={onChange} onClose={() => {}} />);
  const [who, level] = root.querySelectorAll("select");
  expect([...who!.options].map((option) => option.value)).toEqual(["", "user:bob", "role:viewer", "role:member", "role:approver", "role:owner"]);
  await choose(who!, "user:bob");
  await choose(level!, "write");
  await press("Share");
  expect(shared).toHaveBeenLastCalledWith("s", { user: "bob", level: "write" });
  expect(document.activeElement).toBe(who); // the button is disabled again
  await choose(who!, "role:viewer");
  await press("Share");
  expect(shared).toHaveBeenLastCalledWith("s", { role: "viewer", level: "write" });
  expect(onChange).toHaveBeenCalledWith(own(share({})));
  expect(root.querySelector(".shares")!.textContent).toContain("eve opened it as administrator: a complaint");
  expect(button("Revoke: eve")).toBeUndefined();
  await draw(<ShareDialog session="s" sharing={own(share({}))} onChange={onChange} onClose={() => {}} />);
  await press("Revoke: Bob (bob)");
  expect(revoked).toHaveBeenCalledWith("s", "share_1");
});

it("lists thirty people by name, finds one of them, and keeps the focus in the list", async () => {
  const people = Array.from({ length: 30 }, (_, number) => ({ id: `p${number}`, name: `Person ${number}` }));
  vi.spyOn(client, "people").mockResolvedValue({ people });
  vi.spyOn(client, "unshare").mockResolvedValueOnce(undefined).mockRejectedValueOnce(new Error("no"));
  const shares = people.map(({ id }) => share({ id: `share_${id}`, name: id }));
  const without = own(...shares.filter(({ name }) => name !== "p7"));
  vi.spyOn(client, "sharing").mockResolvedValue(without);
  const dialog = (sharing: SharingView) => <ShareDialog session="s" sharing={sharing} onChange={(changed) => render(dialog(changed), root)} onClose={() => {}} />;
  await draw(dialog(own(...shares)));
  expect(root.querySelector("h3")!.textContent).toContain("31");
  const search = root.querySelector<HTMLInputElement>("[type=search]")!;
  const type = (text: string) => act(async () => {
    search.value = text;
    search.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await type("person 12");
  expect([...root.querySelectorAll(".shares strong")].map((row) => row.textContent)).toEqual(["Person 12 (p12)"]);
  await type("nobody of this name");
  expect(root.textContent).toContain("No results");
  await type("");
  button("Revoke: Person 7 (p7)").focus();
  await press("Revoke: Person 7 (p7)");
  expect(document.activeElement).toBe(button("Revoke: Person 8 (p8)"));
  await press("Revoke: Person 8 (p8)"); // the server refuses it
  expect(button("Revoke: Person 8 (p8)").getAttribute("aria-disabled")).toBe("false");
  expect(document.activeElement).toBe(button("Revoke: Person 8 (p8)"));
});

it("makes a link that expires, and shows it once", async () => {
  vi.spyOn(client, "people").mockResolvedValue({ people: [] });
  vi.spyOn(client, "sharing").mockResolvedValue(own());
  const created = vi.spyOn(client, "createLink").mockResolvedValue({ share: share({ kind: "link" }), link: "a/secret" });
  await draw(<ShareDialog session="s" sharing={own()} onChange={() => {}} onClose={() => {}} />);
  await choose([...root.querySelectorAll("select")].at(-1)!, "86400");
  await press("Create link");
  const { expires } = created.mock.calls[0]![1]!;
  expect(Math.abs(expires! - Date.now() / 1000 - 86_400)).toBeLessThan(60);
  expect(document.activeElement).toBe(root.querySelector(".made input")); // so that it is seen on a small screen
  const link = root.querySelector<HTMLInputElement>(".made input")!.value;
  expect(parseRoute(link.slice(link.indexOf("#")))).toEqual({ page: "link", link: "a/secret" });
  await choose([...root.querySelectorAll("select")].at(-1)!, "0");
  await press("Create link");
  expect(created.mock.calls[1]![1]).toEqual({ expires: 0 });
});

it("offers nothing to those who do not own it", async () => {
  await draw(<ShareDialog session="s" sharing={{ author: "eve", level: "write", shares: [], temporary_until: 0 }} onChange={() => {}} onClose={() => {}} />);
  expect(root.textContent).toContain("Only the author of a conversation can share it.");
  expect(root.querySelector("select")).toBeNull();
});

it("opens a link and goes to its conversation, and says what to do if it cannot", async () => {
  vi.spyOn(client, "openLink").mockResolvedValue({ session: "s" });
  await draw(<OpenLink link="x" />);
  expect(location.hash).toBe(hrefFor({ page: "session", session: "s" }));
  vi.spyOn(client, "openLink").mockRejectedValue(new ServerError(404, "unknown", "there is no such link"));
  await draw(<OpenLink link="y" />);
  expect(root.textContent).toContain("Ask the author");
  expect(root.textContent).not.toContain("there is no such link"); // the same again, in the server's words
  vi.spyOn(client, "openLink").mockRejectedValue(new Error("the server could not be reached"));
  await draw(<OpenLink link="z" />);
  expect(root.textContent).toContain("the server could not be reached");
});

it.each([["en", "as administrator"], ["zh", "管理员"]] as const)("tells an author that an administrator opened a conversation (%s)", async (code, words) => {
  language.set(code);
  vi.spyOn(client, "notices").mockResolvedValue({ notices: [{ id: "n", session: "s", title: "Lunch", by: "eve", reason: "a complaint", at: 1000, expires: 2000 }] });
  const dismissed = vi.spyOn(client, "dismissNotice").mockResolvedValue(undefined);
  await draw(<Notices />);
  expect(root.textContent).toContain(words);
  expect(root.textContent).toContain("a complaint");
  await act(async () => root.querySelector("button")!.click());
  expect(dismissed).toHaveBeenCalledWith("n");
});

it("writes a conversation as Markdown that nothing in it breaks out of", () => {
  const message = (role: string, ...parts: unknown[]) => ({ id: role, role, parts }) as unknown as Message;
  const text = toMarkdown("Lunch", [
    message("user", { type: "text", text: "When?" }),
    message("assistant", { type: "tool", name: "look", arguments: { at: "<b>" }, output: { text: "```\n</details>" } }, { type: "text", text: "At noon." }),
    { ...message("user", { type: "text", text: "unseen" }), hidden: true } as Message,
  ]);
  expect(text).toContain("# Lunch\n\n## You\n\nWhen?\n\n## Assistant");
  expect(text).toContain('<summary>look {"at":"&lt;b>"}</summary>');
  expect(text).toContain("````\n```\n</details>\n````");
  expect(text).not.toContain("unseen");
});
