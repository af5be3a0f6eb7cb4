import { describe, expect, it } from "vitest";
import { codeFileName, toCsv } from "../../src/conversation/saveText";

describe("codeFileName", () => {
  it.each([
    ["python", "code.py"], ["TypeScript", "code.ts"], ["json", "code.json"], ["c++", "code.cpp"], ["Dockerfile", "dockerfile"],
    ["", "code.txt"], ["../../etc/passwd", "code.txt"], ["a.b", "code.txt"],
  ])("%s is saved as %s", (language, name) => expect(codeFileName(language)).toBe(name));
});

describe("toCsv", () => {
  it("quotes what needs it, and ends each row", () => {
    expect(toCsv([["thing", "price"], ['a "lamp", brass', "12.50"], ["two\nlines", ""]])).toBe('thing,price\r\n"a ""lamp"", brass",12.50\r\n"two\nlines",\r\n');
  });
  it("marks what a spreadsheet would run as a formula, and leaves numbers alone", () => {
    expect(toCsv([["=1+1", "+a", "@x", "-cmd", "-5", "-3,5%"]])).toBe("'=1+1,'+a,'@x,'-cmd,-5,\"-3,5%\"\r\n");
  });
});
