import { expect, test } from "vitest";
import table from "../../../src/everturn/terminal/tui/gates/risk_table.json";
import cases from "../../../tests/tui/risk_cases.json";
import { commandRisks, compilePattern, hintsFor, pathRisks, urlRisks, type RiskCode } from "../../src/gates/risks";

const codes = (risks: readonly { code: RiskCode }[]) => risks.map((risk) => risk.code);

test("every pattern compiles, and its pieces are filled in", () => {
  const rows = [...table.commands, ...table.paths, ...table.urls].map((row) => row.pattern);
  for (const pattern of [...rows, ...Object.values(table.arguments)])
    for (const name of Object.keys(table.pieces)) expect(compilePattern(pattern).source).not.toContain(`<${name}>`);
});

test.each(cases.commands)("%s", (command, code) => expect(codes(commandRisks(command!))).toContain(code));

test.each(cases.harmless_commands)("nothing is said of: %s", (command) => expect(commandRisks(command)).toEqual([]));

test("what matters most comes first, each kind once", () => {
  const found = commandRisks("cat ../x; sudo rm -rf a; sudo rm -rf b > c");
  expect(found.map((risk) => risk.level)).toEqual([...found.map((risk) => risk.level)].sort());
  expect(new Set(codes(found)).size).toBe(found.length);
  expect(codes(found).slice(0, 2)).toEqual(["delete", "root"]);
});

test.each(cases.paths)("path %j", (path, code) => expect(codes(pathRisks(path!))).toContain(code));

test.each(cases.harmless_paths)("nothing is said of the path %j", (path) => expect(pathRisks(path)).toEqual([]));

test.each(cases.urls)("address %j", (url, code) => expect(codes(urlRisks(url!))).toContain(code));

test.each(cases.harmless_urls)("nothing is said of the address %j", (url) => expect(urlRisks(url)).toEqual([]));

test("a long query is found", () => expect(codes(urlRisks(`https://x.org/?q=${"a".repeat(400)}`))).toEqual(["url_long"]));

test("hints are found by the names of arguments, however deep, and by the tool", () => {
  expect(hintsFor("t", { command: "sudo ls" })).toMatchObject([{ where: "command", code: "root" }]);
  expect(hintsFor("t", { a: [{ path: "../x" }] })).toMatchObject([{ where: "a.0.path", code: "path_up" }]);
  expect(hintsFor("t", { argv: ["rm", "-rf", "x"] })).toMatchObject([{ where: "argv", code: "delete" }]);
  expect(hintsFor("run_shell", { it: "sudo ls" })).toMatchObject([{ code: "root" }]);
  expect(hintsFor("t", { text: "sudo ls" })).toEqual([]);
  expect(hintsFor("t", { target_url: "http://10.0.0.1" })).toMatchObject([{ code: "url_inside" }, { code: "url_plain" }]);
  expect(hintsFor("t", { files: ["ok", "../no"] })).toMatchObject([{ where: "files.1", code: "path_up" }]);
});

test("a long hostile line is read quickly", () => {
  const began = performance.now();
  for (const text of ["rm ".repeat(6000), "a ".repeat(10_000), "git ".repeat(5000), "$(".repeat(10_000), "curl ".repeat(4000), "-x ".repeat(6000), "pip ".repeat(5000), "kubectl a ".repeat(2000), "rm -x ".repeat(3000), "aws s ".repeat(3000), "update x ".repeat(2000)]) commandRisks(text);
  expect(performance.now() - began).toBeLessThan(4000);
});
