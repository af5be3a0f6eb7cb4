// @vitest-environment happy-dom
/** The rules of the administration: each scope has a draft of its own, which waits while another one is shown. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { client } from "../../src/app/app";
import { Rules } from "../../src/pages/admin/rules";

let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement("div"));
  vi.spyOn(client, "get").mockImplementation((path: string, query?: object) => {
    if (path !== "/api/settings/rules") return Promise.resolve({ tools: [] }) as never;
    const scope = (query as { scope?: string }).scope ?? "installation";
    const rule = (tool: string) => ({ text: tool, rule: { tool, action: "ask" } });
    return Promise.resolve({ is_editable: true, scope, scopes: ["installation", "tenant"], fixed: [], stored: { version: 1, by: "ada", at: 1, rules: [rule(`${scope}_1`), rule(`${scope}_2`)] } }) as never;
  });
});
afterEach(() => {
  render(null, root);
  root.remove();
  vi.restoreAllMocks();
});

const settle = () => act(async () => void (await new Promise((resolve) => setTimeout(resolve))));
const draw = async () => {
  await act(async () => render(<Rules />, root));
  await settle();
};
const scope = () => root.querySelector<HTMLSelectElement>("select")!;
const names = () => [...root.querySelectorAll(".item code.name, .item code")].map((node) => node.textContent!.trim());
const press = (label: string) => act(async () => root.querySelector<HTMLElement>(`[aria-label="${label}"]`)!.click());
const choose = async (value: string) => {
  scope().value = value;
  await act(async () => void scope().dispatchEvent(new Event("change", { bubbles: true })));
  await settle();
};

it("keeps the draft of a scope while another scope or page is shown, says so, and lets a person discard it", async () => {
  await draw();
  await press("Remove: Rule 1");
  expect(names()).toEqual(["installation_2"]);
  await choose("tenant");
  expect(names()).toEqual(["tenant_1", "tenant_2"]);
  expect(root.querySelector(".unsaved")).toBeNull();
  expect([...scope().options].map((option) => option.textContent)).toEqual(["All tenants (not saved)", "This tenant only"]);
  await act(async () => render(null, root));
  await draw();
  expect(names()).toEqual(["installation_2"]);
  await act(async () => root.querySelector<HTMLElement>(".unsaved button")!.click());
  expect(names()).toEqual(["installation_1", "installation_2"]);
  expect(scope().options[0]!.textContent).toBe("All tenants");
});

it("tells an operator and an owner who changes the rules of the installation", async () => {
  const about = async (scopes: readonly string[]) => {
    vi.spyOn(client, "get").mockImplementation((path: string) => Promise.resolve(path === "/api/settings/rules"
      ? { is_editable: true, scope: "tenant", scopes, fixed: [{ text: "pay", source: "settings:1", scope: "installation", shadow: "", rule: { tool: "pay", action: "deny", match: {} } }], stored: { version: 0, by: "", at: 0, rules: [] } }
      : { tools: [] }) as never);
    await act(async () => render(null, root));
    await draw();
    return root.textContent;
  };
  expect(await about(["tenant"])).toContain("an operator changes them");
  const operator = await about(["installation", "tenant"]);
  expect(operator).toContain("change them for all tenants");
  expect(operator).toContain("No rules are stored for this tenant.");
});

it("does not change the scope while a rule is being edited", async () => {
  await draw();
  await press("Edit: Rule 1");
  expect(scope().disabled).toBe(true);
});
