/** Viewers: initials of names, and each person once. */
import { expect, test } from "vitest";
import { initialsOf, peopleOf } from "../../src/app/viewerNames";

test.each([["Ada Lovelace", "AL"], ["ada", "A"], ["ada@example.org", "AO"], ["王 小明", "王小"], ["  ", "?"]])("the initials of %s are %s", (name, initials) => {
  expect(initialsOf(name)).toBe(initials);
});

test("a user with two tabs is shown once, and as an administrator if they are one", () => {
  const viewer = { session: "s", gate: "", user: "ada", name: "Ada", is_administrator: false };
  expect(peopleOf([viewer, { ...viewer, gate: "g", is_administrator: true }, { ...viewer, user: "bob" }]).map((each) => [each.user, each.is_administrator])).toEqual([["ada", true], ["bob", false]]);
});
