// @vitest-environment happy-dom
/** Administration: its sections in groups, as links and as a select; both name every section once. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client, me } from "../../src/app/app";
import { parseRoute } from "../../src/app/route";
import { language } from "../../src/app/texts";
import { Admin } from "../../src/pages/admin/admin";

const SECTIONS = ["users", "invitations", "apiKeys", "rules", "models", "agents", "mcp", "schedules", "webhooks", "hooks", "usage", "audit", "quarantine"];
let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  me.set({ user: "ada", role: "owner", csrf: "" } as never);
  vi.spyOn(client, "get").mockReturnValue(new Promise(() => {}));
});
afterEach(() => {
  render(null, root);
  root.remove();
  language.set("en");
  vi.restoreAllMocks();
});

const draw = async (section: string) => {
  await act(async () => render(<Admin section={section} />, root));
};
const select = () => root.querySelector<HTMLSelectElement>("select")!;

it("names every section once in the list and once in the select, in the same groups", async () => {
  await draw("mcp");
  const list = [...root.querySelectorAll("nav ul")].map((group) => ({
    label: document.getElementById(group.getAttribute("aria-labelledby")!)?.textContent,
    names: [...group.querySelectorAll("a")].map((link) => link.textContent),
  }));
  const options = [...root.querySelectorAll("optgroup")].map((group) => ({ label: group.label, names: [...group.querySelectorAll("option")].map((option) => option.textContent) }));
  expect(options).toEqual(list);
  expect(list.map((group) => group.label)).toEqual(["People", "Access", "Models and tools", "Automation", "Operations"]);
  expect([...root.querySelectorAll("option")].map((option) => option.value)).toEqual(SECTIONS);
  expect([...root.querySelectorAll("nav a")].map((link) => parseRoute(link.getAttribute("href")!))).toEqual(SECTIONS.map((section) => ({ page: "admin", section })));
});

it("marks the current section, and labels both for a screen reader", async () => {
  await draw("webhooks");
  expect([...root.querySelectorAll("[aria-current=page]")].map((link) => link.textContent)).toEqual(["Webhooks"]);
  expect(select().value).toBe("webhooks");
  expect(select().closest("label")?.textContent).toContain("Section");
  expect([...root.querySelectorAll("nav")].map((nav) => nav.getAttribute("aria-label"))).toEqual(["Sections of the administration", "Sections of the administration"]);
  expect(root.querySelector("section")?.getAttribute("aria-label")).toBe("Webhooks");
  await act(async () => void language.set("zh"));
  expect(select().closest("label")?.textContent).toContain("栏目");
});

it("says that a section does not exist", async () => {
  await draw("nothing");
  expect(root.querySelector("h1")?.textContent).toBe("Page not found");
  expect(root.querySelector("a")?.getAttribute("href")).toBe("#/");
  expect(["#/", "", "#", "#/?q=1", "#/nothing", "#/s", "#/invite/"].map((hash) => parseRoute(hash).page)).toEqual(["new", "new", "new", "new", "unknown", "unknown", "unknown"]);
});

it("goes to the section that is selected, and keeps the select", async () => {
  await draw("");
  const before = select();
  expect(before.value).toBe("users");
  before.value = "audit";
  await act(async () => void before.dispatchEvent(new Event("change", { bubbles: true })));
  expect(location.hash).toBe("#/admin/audit");
  await draw("audit");
  expect(select()).toBe(before); // so the focus stays
});

it("shows a member neither", async () => {
  me.set({ user: "ben", role: "member", csrf: "" } as never);
  await draw("users");
  expect(root.querySelector("nav, select")).toBeNull();
  expect(root.textContent).toContain("This page is for owners of the tenant.");
});
