import { expect, test } from "vitest";
import { isSameValue } from "../src/json";
import table from "./same_values.json"; // tests/core/test_same_value.py reads it too

test.each(table.same)("%s and %s are spelled differently at most, and say the same", (one, other) => {
  expect(isSameValue(one!, other!)).toBe(true);
  expect(isSameValue(other!, one!)).toBe(true);
});

test.each(table.different)("%s and %s do not say the same", (one, other) => {
  expect(isSameValue(one!, other!)).toBe(false);
  expect(isSameValue(other!, one!)).toBe(false);
});
