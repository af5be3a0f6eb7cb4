/** A call of one of our tools → what is answered. The arguments were held against the schema by the server. */
import type { Gate } from "@everturn/client";
import { MOST_TIME, USUAL_TIME } from "./eval.gen";
import type { Files } from "./files";
import { FilesError } from "./paths";
import type { ToolName } from "./tools";

export interface Done {
  readonly failed: boolean;
  readonly text: string;
}

type Given = Readonly<Record<string, unknown>>;

const USUAL_LINES = 2000;
const MOST_READ = 50_000; // characters

/** Milliseconds that a call may take. */
export function timeOf(tool: ToolName, gate: Gate): number {
  if (tool !== "browser_js_eval") return USUAL_TIME;
  const asked = Number(givenOf(gate)["timeout_ms"] ?? USUAL_TIME);
  return asked >= 1 ? Math.min(asked, MOST_TIME) : USUAL_TIME;
}

/** Do what a call asks. It never throws: what goes wrong is for the model to read. */
export async function perform(tool: ToolName, gate: Gate, files: Files, signal: AbortSignal): Promise<Done> {
  const given = givenOf(gate);
  const path = String(given["path"] ?? "");
  try {
    switch (tool) {
      case "browser_js_eval":
        return await evaluate(String(given["code"] ?? ""), timeOf(tool, gate), files, signal);
      case "list_directory":
        return done(JSON.stringify(await files.list(path)));
      case "read_file": {
        const text = excerpt(await files.read(path), Number(given["offset"] ?? 1), Number(given["limit"] ?? USUAL_LINES));
        return done(gate.form?.includes('"string"') ? JSON.stringify(text) : text); // a schema of its answer is one of JSON
      }
      case "write_file":
        return done(JSON.stringify({ written: await files.write(path, String(given["content"] ?? "")) }));
    }
  } catch (error) {
    const why = error instanceof FilesError ? error.message : `this browser could not do it: ${String(error)}`;
    return { failed: true, text: path ? `${path}: ${why}` : why };
  }
}

async function evaluate(code: string, limit: number, files: Files, signal: AbortSignal): Promise<Done> {
  const { run } = await import("./run");
  const { failed, text, console } = await run(code, limit, files, signal);
  if (!failed) return done(`{"value":${text}${console.length ? `,"console":${JSON.stringify(console)}` : ""}}`);
  return { failed, text: console.length ? `${text}\nconsole:\n${console.join("\n")}` : text };
}

/** Some lines of a text, and how to read on. */
export function excerpt(text: string, offset: number, limit: number): string {
  const lines = text.split("\n");
  if (offset > lines.length) throw new FilesError(`it has ${lines.length} lines`);
  const some = lines.slice(offset - 1, offset - 1 + limit);
  let shown = some.length;
  for (let size = 0, at = 0; at < some.length; at++) if ((size += some[at]!.length + 1) > MOST_READ) { shown = at; break; }
  const said = shown ? some.slice(0, shown).join("\n") : some[0]!.slice(0, MOST_READ);
  const next = offset + Math.max(shown, 1);
  if (!shown) return `${said}\n(line ${offset} goes on for ${some[0]!.length - MOST_READ} characters)`;
  return next <= lines.length ? `${said}\n(${lines.length - next + 1} more lines; read on with offset ${next})` : said;
}

const done = (text: string): Done => ({ failed: false, text });

function givenOf(gate: Gate): Given {
  try {
    const given = JSON.parse(gate.arguments) as unknown;
    return typeof given === "object" && given !== null ? (given as Given) : {};
  } catch {
    return {};
  }
}
