/**
 * Sandbox: runs JavaScript in an iframe of its own, without an origin, that is removed afterwards; see
 * `public/sandbox/frame.html`. What comes out of the frame is untrusted text of bounded length.
 */
import type { Files } from "./files";

export interface RunResult {
  readonly failed: boolean;
  readonly text: string; // JSON of the returned value, or the error
  readonly console: readonly string[];
}

export const MAX_RESULT = 64 * 1024; // characters of a result
const MAX_LINES = 200;
const MAX_LINE = 2000;
const MAX_CONSOLE = 16 * 1024;
const MAX_FILE_REQUESTS = 1000;
const START_TIMEOUT = 15_000; // milliseconds in which a frame must have started
const GRACE = 1000; // milliseconds beyond its limit before it is removed

export const FRAME = "/sandbox/frame.html";
const FILE_OPS = { list: 1, read: 1, write: 2 } as const; // and their number of arguments

/** Run the body of an async function, for at most `limit` milliseconds. It never throws; `signal` removes the frame. */
export function run(code: string, limit: number, files: Files, signal?: AbortSignal, frameUrl = FRAME): Promise<RunResult> {
  return new Promise((resolve) => {
    const lines: string[] = [];
    let consoleLength = 0;
    let requests = 0;
    let isOver = false;
    let stage = 0; // 1: it has the code; 2: the code has started. It never goes back, or a frame could give itself more time
    let before = Promise.resolve(); // file requests run one after the other, to keep the page responsive
    const frame = document.createElement("iframe");
    const { port1: port, port2: framePort } = new MessageChannel();

    const end = (failed: boolean, text: string) => {
      isOver = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      port.close();
      frame.remove();
      resolve({ failed, text, console: lines });
    };
    const stop = () => end(true, "it was stopped: the turn is over");
    let timer = setTimeout(() => end(true, "the sandbox did not begin; nothing was run"), START_TIMEOUT);

    const appendLine = (line: string) => {
      if (lines.length >= MAX_LINES || consoleLength >= MAX_CONSOLE) return;
      const short = line.slice(0, Math.min(MAX_LINE, MAX_CONSOLE - consoleLength));
      consoleLength += short.length;
      lines.push(short);
    };
    const answerRequest = async (id: number, op: string, args: unknown[]) => {
      if (isOver) return;
      try {
        port.postMessage({ id, ok: true, value: await callFiles(files, op, args) });
      } catch (error) {
        port.postMessage({ id, ok: false, value: error instanceof Error ? error.message : "this failed" });
      }
    };

    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (isOver) return;
      const { kind, line, value, why, id, op, given: args } = (data ?? {}) as Record<string, unknown>;
      if (kind === "ready" && stage < 1) {
        stage = 1;
        port.postMessage({ code, limit });
      } else if (kind === "started" && stage < 2) {
        stage = 2;
        clearTimeout(timer);
        const late = `it was stopped after ${limit} ms, or has used up the memory there is`;
        timer = setTimeout(() => end(true, late), limit + GRACE);
      } else if (kind === "line" && typeof line === "string") appendLine(line);
      else if (kind === "files" && typeof id === "number" && typeof op === "string" && Array.isArray(args)) {
        if (++requests > MAX_FILE_REQUESTS) end(true, `files can be asked at most ${MAX_FILE_REQUESTS} times in a run`);
        else before = before.then(() => answerRequest(id, op, args));
      } else if (kind === "done") end(...checkResult(value));
      else if (kind === "failed") end(true, typeof why === "string" ? why.slice(0, MAX_LINE * 2) : "it failed");
    };
    frame.addEventListener("load", () => frame.contentWindow?.postMessage("run", "*", [framePort]), { once: true });
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("allow", "");
    frame.setAttribute("aria-hidden", "true");
    frame.title = "Sandbox";
    frame.tabIndex = -1;
    frame.hidden = true;
    frame.src = frameUrl;
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop);
    document.body.append(frame);
  });
}

function checkResult(value: unknown): [failed: boolean, text: string] {
  if (typeof value !== "string") return [true, "what was returned cannot be shown"];
  if (value.length > 6 * MAX_RESULT) return [true, "what was returned is too long"];
  try {
    const text = JSON.stringify(JSON.parse(value));
    if (text.length <= MAX_RESULT) return [false, text];
    return [false, JSON.stringify(`${text.slice(0, MAX_RESULT / 2)}… (${text.length - MAX_RESULT / 2} more characters)`)];
  } catch {
    return [true, "what was returned is no JSON"];
  }
}

async function callFiles(files: Files, op: string, args: unknown[]): Promise<unknown> {
  const takes = Object.hasOwn(FILE_OPS, op) ? FILE_OPS[op as keyof typeof FILE_OPS] : 0;
  // Spread: `every` skips the holes of an array.
  if (!takes || args.length !== takes || ![...args].every((argument) => typeof argument === "string")) throw new Error("files can list, read and write");
  const [path, content] = args as [string, string];
  if (op === "write") return files.write(path, content);
  return op === "read" ? files.read(path) : files.list(path);
}
