import { expect, test } from "vitest";
import { isSameValue } from "../src/json";
import table from "./same_values.json"; // tests/core/test_canonical_json.py reads it too

test.each(table.same)("%s and %s are spelled differently at most, and say the same", (left, right) => {
  expect(isSameValue(left!, right!)).toBe(true);
  expect(isSameValue(right!, left!)).toBe(true);
});

test.each(table.different)("%s and %s do not say the same", (left, right) => {
  expect(isSameValue(left!, right!)).toBe(false);
  expect(isSameValue(right!, left!)).toBe(false);
});
