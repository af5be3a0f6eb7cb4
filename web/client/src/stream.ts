/** Event stream that reconnects by itself: from the last cursor after every break, with exponential backoff while the server is unreachable. */
import { ServerError } from "./errors.js";
import { SseParser, type StreamMessage } from "./sse.js";

export type StreamStatus = "connecting" | "open" | "waiting" | "closed";

/** What follows from a message: `true`, it was the last; `"again"` or `"later"`, the server ends this connection, not the stream. */
export type MessageOutcome = boolean | "again" | "later" | void;

export interface FollowOptions {
  /** Open a stream after a cursor. */
  open(after: string, signal: AbortSignal): Promise<Response>;
  after?: string;
  signal: AbortSignal;
  onMessage(message: StreamMessage): MessageOutcome;
  onStatus?(status: StreamStatus): void;
  /** Seconds without data after which a connection counts as lost. */
  silence?: number;
}

const INITIAL_WAIT = 250;
const MAX_WAIT = 10_000;
const MAX_RETRY_AFTER = 120_000; // upper limit of a server's Retry-After
const RECONNECT_SPREAD = 50; // random spread, so that clients of a draining server do not all reconnect at once
const LATER = 0;
const SILENCE = 45;
const STABLE_AFTER = 5_000; // a connection that lasted this long resets the backoff

/** Follow until the signal aborts, the last message arrives, or the server refuses for good (then it throws). */
export async function follow(options: FollowOptions): Promise<void> {
  let cursor = options.after ?? "";
  const setStatus = options.onStatus ?? (() => {});
  try {
    await retryUntilDone(options.signal, async (backoff) => {
      setStatus("connecting");
      const began = Date.now();
      let isGood = false;
      try {
        return await connect(options, cursor, () => setStatus("open"), (message) => {
          const taken = options.onMessage(message);
          if (message.id) cursor = message.id; // after it was handled: a message that cannot be handled is requested again
          isGood ||= typeof taken !== "string";
          return taken;
        });
      } finally {
        if (isGood || Date.now() - began > STABLE_AFTER) backoff.reset();
      }
    }, () => setStatus("waiting"));
  } finally {
    setStatus("closed");
  }
}

/** Read one connection to its end: true, nothing more will come; a number, reconnect after so many milliseconds. */
async function connect(options: FollowOptions, cursor: string, isOpen: () => void, onMessage: (message: StreamMessage) => MessageOutcome): Promise<true | number> {
  const lost = new AbortController();
  const stop = () => lost.abort();
  options.signal.addEventListener("abort", stop, { once: true });
  const silence = (options.silence ?? SILENCE) * 1000;
  let timer = setTimeout(stop, silence);
  let taken = false as MessageOutcome; // cast: it is assigned in a callback, which the compiler does not track
  const parser = new SseParser((message) => {
    if (options.signal.aborted) return true;
    taken = onMessage(message);
    return taken === true || typeof taken === "string";
  });
  try {
    const answer = await options.open(cursor, lost.signal);
    isOpen();
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return LATER;
      clearTimeout(timer);
      timer = setTimeout(stop, silence);
      if (parser.feed(decoder.decode(value, { stream: true }))) return taken === "again" ? RECONNECT_SPREAD : taken !== "later" || LATER;
    }
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", stop);
    lost.abort();
  }
}

/** Retry with exponential backoff until it is done; `onWait` is called before each wait.
 *
 * `attempt` returns `true` when it is done, or the milliseconds after which to try again (0: as if the server were unreachable).
 */
export async function retryUntilDone(
  signal: AbortSignal,
  attempt: (backoff: { reset(): void }) => Promise<true | number>,
  onWait: () => void = () => {},
): Promise<void> {
  let wait = INITIAL_WAIT;
  const backoff = { reset: () => void (wait = INITIAL_WAIT) };
  while (!signal.aborted) {
    let delay = 0;
    try {
      const done = await attempt(backoff);
      if (done === true) return;
      // A connection that is ended at once again and again has to back off as well.
      if (done && wait === INITIAL_WAIT) delay = -done;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ServerError) {
        if (!error.isAway) throw error;
        delay = Math.min(error.retryAfter * 1000, MAX_RETRY_AFTER);
      }
    }
    if (signal.aborted) return;
    onWait();
    await sleep(delay < 0 ? -delay * Math.random() : Math.max(delay, wait * (0.5 + Math.random() / 2)), signal);
    wait = Math.min(wait * 2, MAX_WAIT);
  }
}

/** Wait; shorter when the signal aborts or the machine is online again. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      globalThis.removeEventListener?.("online", done);
      resolve();
    }
    signal?.addEventListener("abort", done);
    globalThis.addEventListener?.("online", done);
  });
}
