/** Modules do not import each other in a circle, neither at once nor lazily; imports of types alone do not count. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const IMPORT = /^(?:import|export)\s(?!type\s)(?:[^"';]*?\sfrom\s)?\s*"(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm;

type Graph = ReadonlyMap<string, readonly string[]>;

/** The files that a module's text imports, of those that `exists` knows. */
function importsOf(file: string, text: string, exists: (path: string) => boolean): string[] {
  const paths = [...text.matchAll(IMPORT)].map((match) => join(dirname(file), (match[1] ?? match[2])!.replace(/\.js$/, "")));
  return paths.flatMap((path) => [path, `${path}.ts`, `${path}.tsx`].find((name) => /\.tsx?$/.test(name) && exists(name)) ?? []);
}

/** The first circle that is found, from a module back to itself. */
function findCircle(graph: Graph): string[] | null {
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (finished.has(file)) return null;
    for (const next of graph.get(file) ?? []) {
      const circle = visit(next, [...path, file]);
      if (circle) return circle;
    }
    finished.add(file);
    return null;
  };
  for (const file of graph.keys()) {
    const circle = visit(file, []);
    if (circle) return circle;
  }
  return null;
}

function readGraph(folder: string): Graph {
  const files = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => /\.tsx?$/.test(name)).map((name) => join(folder, name));
  return new Map(files.map((file) => [file, importsOf(file, readFileSync(file, "utf8"), existsSync)]));
}

test("the check reads every form of import", () => {
  const text = 'import "./a";\nimport { b,\n  type C } from "./b";\nexport * from "../d";\nconst e = () => import("./e");\nimport type { F } from "./f";\nimport g from "g";\n';
  expect(importsOf("/src/x/y.ts", text, (path) => path.endsWith(".ts"))).toEqual(["/src/x/a.ts", "/src/x/b.ts", "/src/d.ts", "/src/x/e.ts"]);
});

test("the check finds a circle", () => {
  expect(findCircle(new Map([["a", ["b"]], ["b", ["c", "d"]], ["c", []], ["d", ["b"]]]))).toEqual(["b", "d", "b"]);
  expect(findCircle(new Map([["a", ["b", "c"]], ["b", ["c"]], ["c", []]]))).toBeNull();
});

test.each(["src", "client/src"])("no modules of %s import each other in a circle", (folder) => {
  const graph = readGraph(join(ROOT, folder));
  expect([...graph.values()].flat().length).toBeGreaterThan(10);
  expect(findCircle(graph)?.map((file) => relative(ROOT, file)) ?? null).toBeNull();
});
