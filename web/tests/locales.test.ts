/** The catalogues: what is compiled says the same as the library of ICU MessageFormat, and no text stands in the code. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { IntlMessageFormat } from "intl-messageformat";
import ts from "typescript";
import { describe, expect, test, vi } from "vitest";

vi.mock("../src/app/texts", () => ({
  defineTexts: (en: unknown, zh: unknown) => ({ en, zh }),
  format: { number: (value: number) => new Intl.NumberFormat("en").format(value) },
}));

type Table = Record<string, string | ((...values: unknown[]) => string)>;
const LOCALES = join(__dirname, "../../src/everturn/locales");
const SRC = join(__dirname, "../src");
const catalog = (language: string): Record<string, Record<string, string>> => JSON.parse(readFileSync(join(LOCALES, `${language}.json`), "utf-8"));
const modules = import.meta.glob<{ useTexts: unknown }>("../src/locales/*.gen.ts");

interface Element { readonly type: number; readonly value: string; readonly options?: Record<string, { readonly value: readonly Element[] }> }
const NUMBER = 2, SELECT = 5, PLURAL = 6, ARGUMENT = 1; // types of the library's elements

/** The placeholders of a text, in order, with what is given for each. */
function values(elements: readonly Element[], found = new Map<string, readonly unknown[]>()): Map<string, readonly unknown[]> {
  for (const { type, value, options } of elements) {
    if (type === ARGUMENT && !found.has(value)) found.set(value, ["‹a {b} 'c'›"]);
    if (type === NUMBER || type === PLURAL) found.set(value, [0, 1, 2, 5, 21]);
    if (type === SELECT) found.set(value, options!["true"] ? [true, false] : [...Object.keys(options!), "another"]);
    for (const option of Object.values(options ?? {})) values(option.value, found);
  }
  return found;
}

describe.each(["en", "zh"])("%s", (language) => {
  test.each(Object.keys(modules))("%s says what the catalogue says", async (path) => {
    const name = path.replace(/^.*\/(.*)\.gen\.ts$/, "$1");
    const group = catalog(language)[`web.${name}`] ?? catalog(language)[name]!;
    const english = catalog("en")[`web.${name}`] ?? catalog("en")[name]!;
    const table = ((await modules[path]!()).useTexts as Record<string, Table>)[language]!;
    expect(Object.keys(table).sort()).toEqual(Object.keys(group).sort());
    for (const [key, text] of Object.entries(group)) {
      const library = new IntlMessageFormat(text, language, undefined, { ignoreTag: true });
      const compiled = table[key]!;
      if (typeof compiled === "string") { expect(compiled).toBe(library.format()); continue; }
      const given = [...values(new IntlMessageFormat(english[key]!, "en", undefined, { ignoreTag: true }).getAst() as never)];
      expect(compiled.length, key).toBe(given.length);
      const most = Math.max(...given.map(([, options]) => options.length));
      for (let index = 0; index < most; index++) {
        const chosen = given.map(([parameter, options]) => [parameter, options[index % options.length]] as const);
        expect(compiled(...chosen.map(([, value]) => value)), key).toBe(library.format(Object.fromEntries(chosen)));
      }
    }
  });
});

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (entry.name.endsWith(".tsx")) yield path;
  }
}

/** Texts of a component that a person reads: between tags, and in the attributes that are read or shown. */
export function writtenTexts(name: string, code: string): string[] {
  const found: string[] = [];
  const file = ts.createSourceFile(name, code, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node) && /\p{L}{3}/u.test(node.text)) found.push(node.text.trim());
    if (ts.isJsxAttribute(node) && /^(title|label|alt|placeholder|aria-label|done)$/.test(node.name.getText()) && node.initializer && ts.isStringLiteral(node.initializer) && /\p{L}{3}/u.test(node.initializer.text)) found.push(node.initializer.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Names, commands and examples, which are the same in every language. */
const NAMES = new Set(["Everturn", "everturn login", "Tab", "pip install 'everturn[passwords]'", "openai:gpt-5.2", "https://models.example.com/v1", "https://mcp.example.com/mcp", "Authorization", "https://example.com/hook", "{{issue.number}}", "action = opened, reopened"]);

test("no component has a text of its own", () => {
  const found = [...sources(SRC)].flatMap((path) => writtenTexts(path, readFileSync(path, "utf-8")).filter((text) => !NAMES.has(text)).map((text) => `${path.slice(SRC.length + 1)}: ${text}`));
  expect(found).toEqual([]);
  expect(writtenTexts("a.tsx", `const a = <p title="Close it">Delete {name}</p>;`)).toEqual(["Close it", "Delete"]);
});
