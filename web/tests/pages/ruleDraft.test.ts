import { describe, expect, it } from "vitest";
import type { StoredRule } from "@everturn/client";
import { cleanRule, isSame, isStored, KeptDrafts, withMoved, withoutRule, withRule } from "../../src/pages/admin/ruleDraft";

const pay: StoredRule = { tool: "pay", action: "deny" };
const look: StoredRule = { tool: "look", action: "ask", match: { at: "a*", by: "b" }, note: "why" };

describe("a draft of rules", () => {
  it("is sent without spaces around texts, and without fields at their defaults", () => {
    expect(cleanRule({ tool: " pay ", action: "deny", match: { " at ": " x ", "": "y" }, enabled: true, note: "  " })).toEqual({ tool: "pay", action: "deny", match: { at: "x" } });
    expect(cleanRule({ ...pay, enabled: false, match: {} })).toEqual({ tool: "pay", action: "deny", enabled: false });
  });

  it("is the same when only the spelling of defaults and the order of arguments differ", () => {
    expect(isSame([pay, look], [{ ...pay, enabled: true, match: {}, note: "" }, { ...look, match: { by: "b", at: "a*" } }])).toBe(true);
    for (const other of [[look, pay], [pay], [pay, { ...look, enabled: false }], [pay, { ...look, note: "" }], [pay, { ...look, match: { at: "a*" } }]] as StoredRule[][]) {
      expect(isSame([pay, look], other)).toBe(false);
    }
    expect(isStored(look, [pay, { ...look }])).toBe(true);
    expect(isStored({ ...look, action: "deny" }, [pay, look])).toBe(false);
  });

  it("moves rules within the list, replaces, adds and removes them", () => {
    expect(withMoved([pay, look], 1, -1)).toEqual([look, pay]);
    expect(withMoved([pay, look], 1, 1)).toEqual([pay, look]);
    expect(withMoved([pay, look], 0, -1)).toEqual([pay, look]);
    expect(withRule([pay], 1, look)).toEqual([pay, look]);
    expect(withRule([pay, pay], 0, look)).toEqual([look, pay]);
    expect(withoutRule([pay, look], 0)).toEqual([look]);
  });
});

it("keeps a draft for its scope and version until it is the same as what is stored, or others have saved", () => {
  const drafts = new KeptDrafts();
  drafts.keep("tenant", 3, [pay], [look]);
  expect(drafts.get("tenant", 3)).toEqual([pay]);
  expect(drafts.get("installation", 3)).toBeUndefined();
  drafts.keep("tenant", 3, [{ ...look }], [look]);
  expect(drafts.has("tenant")).toBe(false);
  drafts.keep("tenant", 3, [pay], [look]);
  expect(drafts.get("tenant", 4)).toBeUndefined();
  expect(drafts.has("tenant")).toBe(false);
});
