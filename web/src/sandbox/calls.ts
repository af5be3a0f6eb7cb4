/** Runs the calls of browser tools. The server has validated the arguments against the schema. */
import type { Gate } from "@everturn/client";
import { MOST_TIME, USUAL_TIME } from "./eval.gen";
import type { Files } from "./files";
import { FilesError } from "./paths";
import type { ToolName } from "./toolName";

export interface ToolResult {
  readonly failed: boolean;
  readonly text: string;
}

type ToolArguments = Readonly<Record<string, unknown>>;

const DEFAULT_LINES = 2000;
const MAX_READ = 50_000; // characters

/** Timeout of a call, in milliseconds. */
export function timeoutFor(tool: ToolName, gate: Gate): number {
  if (tool !== "browser_js_eval") return USUAL_TIME;
  const requested = Number(parseArguments(gate)["timeout_ms"] ?? USUAL_TIME);
  return requested >= 1 ? Math.min(requested, MOST_TIME) : USUAL_TIME;
}

/** Run a call. It never throws: an error is a result for the model. */
export async function runTool(tool: ToolName, gate: Gate, files: Files, signal: AbortSignal): Promise<ToolResult> {
  const args = parseArguments(gate);
  const path = String(args["path"] ?? "");
  try {
    switch (tool) {
      case "browser_js_eval":
        return await evaluate(String(args["code"] ?? ""), timeoutFor(tool, gate), files, signal);
      case "list_directory":
        return success(JSON.stringify(await files.list(path)));
      case "read_file": {
        const text = excerpt(await files.read(path), Number(args["offset"] ?? 1), Number(args["limit"] ?? DEFAULT_LINES));
        return success(gate.form?.includes('"string"') ? JSON.stringify(text) : text); // an output schema means JSON
      }
      case "write_file":
        return success(JSON.stringify({ written: await files.write(path, String(args["content"] ?? "")) }));
    }
  } catch (error) {
    const why = error instanceof FilesError ? error.message : `this browser could not do it: ${String(error)}`;
    return { failed: true, text: path ? `${path}: ${why}` : why };
  }
}

async function evaluate(code: string, limit: number, files: Files, signal: AbortSignal): Promise<ToolResult> {
  const { run } = await import("./run");
  const { failed, text, console } = await run(code, limit, files, signal);
  if (!failed) return success(`{"value":${text}${console.length ? `,"console":${JSON.stringify(console)}` : ""}}`);
  return { failed, text: console.length ? `${text}\nconsole:\n${console.join("\n")}` : text };
}

/** Some lines of a text, and how to read on. */
export function excerpt(text: string, offset: number, limit: number): string {
  const lines = text.split("\n");
  if (offset > lines.length) throw new FilesError(`it has ${lines.length} lines`);
  const selected = lines.slice(offset - 1, offset - 1 + limit);
  let shown = selected.length;
  for (let size = 0, index = 0; index < selected.length; index++) if ((size += selected[index]!.length + 1) > MAX_READ) { shown = index; break; }
  const excerpt = shown ? selected.slice(0, shown).join("\n") : selected[0]!.slice(0, MAX_READ);
  const next = offset + Math.max(shown, 1);
  if (!shown) return `${excerpt}\n(line ${offset} goes on for ${selected[0]!.length - MAX_READ} characters)`;
  return next <= lines.length ? `${excerpt}\n(${lines.length - next + 1} more lines; read on with offset ${next})` : excerpt;
}

const success = (text: string): ToolResult => ({ failed: false, text });

function parseArguments(gate: Gate): ToolArguments {
  try {
    const args = JSON.parse(gate.arguments) as unknown;
    return typeof args === "object" && args !== null ? (args as ToolArguments) : {};
  } catch {
    return {};
  }
}
