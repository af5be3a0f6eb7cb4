/**
 * Code → what came of it. Each run has a frame of its own, without an origin, that is gone afterwards; see
 * `public/sandbox/frame.html`. What comes out of the frame is believed to be no more than text of a bounded length.
 */
import type { Files } from "./files";

export interface Ran {
  readonly failed: boolean;
  readonly text: string; // JSON of what was returned, or why there is nothing
  readonly console: readonly string[];
}

export const MOST_OUT = 64 * 1024; // characters of a result
const MOST_LINES = 200;
const MOST_LINE = 2000;
const MOST_CONSOLE = 16 * 1024;
const MOST_ASKS = 1000;
const BEGIN = 15_000; // milliseconds in which a frame must have begun
const GRACE = 1000; // and what it is given beyond its limit before it is taken away

export const FRAME = "/sandbox/frame.html";
const FILE_OPS = { list: 1, read: 1, write: 2 } as const; // and how many arguments they take

/** Run the body of an async function, for at most `limit` milliseconds. It never throws; `signal` takes the frame away. */
export function run(code: string, limit: number, files: Files, signal?: AbortSignal, at = FRAME): Promise<Ran> {
  return new Promise((resolve) => {
    const lines: string[] = [];
    let said = 0;
    let asked = 0;
    let isOver = false;
    let stage = 0; // 1: it has the code; 2: that has begun. There is no way back, or a frame could make itself more time
    let before = Promise.resolve(); // files are asked one after the other: the page has other things to do
    const frame = document.createElement("iframe");
    const { port1: port, port2: theirs } = new MessageChannel();

    const end = (failed: boolean, text: string) => {
      isOver = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      port.close();
      frame.remove();
      resolve({ failed, text, console: lines });
    };
    const stop = () => end(true, "it was stopped: the turn is over");
    let timer = setTimeout(() => end(true, "the sandbox did not begin; nothing was run"), BEGIN);

    const hear = (line: string) => {
      if (lines.length >= MOST_LINES || said >= MOST_CONSOLE) return;
      const short = line.slice(0, Math.min(MOST_LINE, MOST_CONSOLE - said));
      said += short.length;
      lines.push(short);
    };
    const serve = async (id: number, op: string, given: unknown[]) => {
      if (isOver) return;
      try {
        port.postMessage({ id, ok: true, value: await ask(files, op, given) });
      } catch (error) {
        port.postMessage({ id, ok: false, value: error instanceof Error ? error.message : "this failed" });
      }
    };

    port.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (isOver) return;
      const { kind, line, value, why, id, op, given } = (data ?? {}) as Record<string, unknown>;
      if (kind === "ready" && stage < 1) {
        stage = 1;
        port.postMessage({ code, limit });
      } else if (kind === "started" && stage < 2) {
        stage = 2;
        clearTimeout(timer);
        const late = `it was stopped after ${limit} ms, or has used up the memory there is`;
        timer = setTimeout(() => end(true, late), limit + GRACE);
      } else if (kind === "line" && typeof line === "string") hear(line);
      else if (kind === "files" && typeof id === "number" && typeof op === "string" && Array.isArray(given)) {
        if (++asked > MOST_ASKS) end(true, `files can be asked at most ${MOST_ASKS} times in a run`);
        else before = before.then(() => serve(id, op, given));
      } else if (kind === "done") end(...checked(value));
      else if (kind === "failed") end(true, typeof why === "string" ? why.slice(0, MOST_LINE * 2) : "it failed");
    };
    frame.addEventListener("load", () => frame.contentWindow?.postMessage("run", "*", [theirs]), { once: true });
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("allow", "");
    frame.setAttribute("aria-hidden", "true");
    frame.title = "Sandbox";
    frame.tabIndex = -1;
    frame.hidden = true;
    frame.src = at;
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop);
    document.body.append(frame);
  });
}

function checked(value: unknown): [failed: boolean, text: string] {
  if (typeof value !== "string") return [true, "what was returned cannot be shown"];
  if (value.length > 6 * MOST_OUT) return [true, "what was returned is too long"];
  try {
    const text = JSON.stringify(JSON.parse(value));
    if (text.length <= MOST_OUT) return [false, text];
    return [false, JSON.stringify(`${text.slice(0, MOST_OUT / 2)}… (${text.length - MOST_OUT / 2} more characters)`)];
  } catch {
    return [true, "what was returned is no JSON"];
  }
}

async function ask(files: Files, op: string, given: unknown[]): Promise<unknown> {
  const takes = Object.hasOwn(FILE_OPS, op) ? FILE_OPS[op as keyof typeof FILE_OPS] : 0;
  // Spread: `every` passes over the holes of a list.
  if (!takes || given.length !== takes || ![...given].every((one) => typeof one === "string")) throw new Error("files can list, read and write");
  const [path, content] = given as [string, string];
  if (op === "write") return files.write(path, content);
  return op === "read" ? files.read(path) : files.list(path);
}
