// @vitest-environment happy-dom
/** A banner says that the browser is offline, for as long as it is. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it, vi } from "vitest";
import { client } from "../../src/app/app";
import { Notices } from "../../src/app/notices";

afterEach(() => vi.restoreAllMocks());

it("is shown while the browser is offline", async () => {
  vi.spyOn(client, "notices").mockResolvedValue({ notices: [] });
  const online = vi.spyOn(navigator, "onLine", "get").mockReturnValue(true);
  const root = document.body.appendChild(document.createElement("div"));
  await act(async () => render(<Notices />, root));
  expect(root.querySelector("[role=status]")).toBeNull();
  online.mockReturnValue(false);
  await act(async () => void dispatchEvent(new Event("offline")));
  expect(root.querySelector("[role=status]")?.textContent).toContain("You are offline.");
  online.mockReturnValue(true);
  await act(async () => void dispatchEvent(new Event("online")));
  expect(root.querySelector("[role=status]")).toBeNull();
});
