/** Details of audit records, as people read them. */
import { expect, it } from "vitest";
import { detailText } from "../../src/pages/admin/audit";

it("shows the fields of a record that say something, and a time as a time", () => {
  expect(detailText('{"edited":false,"said":"once","within":"","expires":0}')).toBe("said: once");
  expect(detailText('{"expires":1795398033.26,"role":"member"}')).toMatch(/^expires: Nov 2\d, 2026.* · role: member$/);
  expect(detailText('{"tools":["a","b"]}')).toBe('tools: ["a","b"]');
  for (const text of ["", "plain", "[1]", "7"]) expect(detailText(text)).toBe(text);
});
