import { expect, test } from "vitest";
import { MOST_SHOWN, readDocumentText } from "../../src/conversation/documentText";

const stored = (info: object, text: string) => new TextEncoder().encode(`${JSON.stringify(info)}\n${text}`);

test("the text of a document is divided by bytes, not by characters", () => {
  const found = readDocumentText(stored({ kind: "xlsx", sizes: [8, 3], titles: ["Plan", "Old"] }, "1\tKöln!two"));
  expect(found).toEqual({ unit: "sheet", problem: "", isCut: false, sections: [{ title: "Plan", text: "1\tKöln!" }, { title: "Old", text: "two" }] });
});

test("a document without text says why", () => {
  const found = readDocumentText(stored({ kind: "pdf", problem: "it has a password" }, ""));
  expect(found).toEqual({ unit: "page", problem: "it has a password", isCut: false, sections: [] });
});

test("of a long document the first part is shown", () => {
  const found = readDocumentText(stored({ kind: "docx", sizes: [MOST_SHOWN + 5] }, "a".repeat(MOST_SHOWN + 5)));
  expect(found.isCut).toBe(true);
  expect(found.sections[0]?.text.length).toBe(MOST_SHOWN);
});
