/** An event stream that goes on by itself: after every break from the last cursor, waiting longer each time nobody answers. */
import { ServerError } from "./errors.js";
import { Parser, type StreamMessage } from "./sse.js";

export type Standing = "connecting" | "open" | "waiting" | "closed";

/** What is to be made of a message: `true`, it was the last; `"again"` or `"later"`, the server ends this connection, not the stream. */
export type Taken = boolean | "again" | "later" | void;

export interface Follow {
  /** Begin a stream after a cursor. */
  open(after: string, signal: AbortSignal): Promise<Response>;
  after?: string;
  signal: AbortSignal;
  onMessage(message: StreamMessage): Taken;
  onStanding?(standing: Standing): void;
  /** Seconds without a sign of life after which a connection counts as lost. */
  silence?: number;
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 10_000;
const LONGEST_ASKED = 120_000; // however long a server asks to be left alone
const AT_ONCE = 50; // so that not all readers of a server that leaves come to the next one in the same moment
const LATER = 0;
const SILENCE = 45;
const STEADY = 5_000; // a connection that stood so long was a good one, whatever came over it

/** Follow until the signal says so, the last message came, or the server refuses for good (it throws that). */
export async function follow(how: Follow): Promise<void> {
  let cursor = how.after ?? "";
  const tell = how.onStanding ?? (() => {});
  try {
    await persist(how.signal, async (waits) => {
      tell("connecting");
      const began = Date.now();
      let isGood = false;
      try {
        return await connect(how, cursor, () => tell("open"), (message) => {
          const taken = how.onMessage(message);
          if (message.id) cursor = message.id; // after it was taken: what cannot be read is asked for again
          isGood ||= typeof taken !== "string";
          return taken;
        });
      } finally {
        if (isGood || Date.now() - began > STEADY) waits.reset();
      }
    }, () => tell("waiting"));
  } finally {
    tell("closed");
  }
}

/** Read one connection to its end: true, nothing more will come; a number, go on after so many milliseconds. */
async function connect(how: Follow, cursor: string, isOpen: () => void, take: (message: StreamMessage) => Taken): Promise<true | number> {
  const lost = new AbortController();
  const stop = () => lost.abort();
  how.signal.addEventListener("abort", stop, { once: true });
  const silence = (how.silence ?? SILENCE) * 1000;
  let timer = setTimeout(stop, silence);
  let taken = false as Taken; // as, for it is changed where the compiler does not look
  const parser = new Parser((message) => {
    if (how.signal.aborted) return true;
    taken = take(message);
    return taken === true || typeof taken === "string";
  });
  try {
    const answer = await how.open(cursor, lost.signal);
    isOpen();
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return LATER;
      clearTimeout(timer);
      timer = setTimeout(stop, silence);
      if (parser.feed(decoder.decode(value, { stream: true }))) return taken === "again" ? AT_ONCE : taken !== "later" || LATER;
    }
  } finally {
    clearTimeout(timer);
    how.signal.removeEventListener("abort", stop);
    lost.abort();
  }
}

/** Do something until it is done: when nobody answers, again, and later each time; in between `onWait` is told.
 *
 * The deed answers `true` when it is done, or when it is to be done again, in milliseconds (0: as if nobody had answered).
 */
export async function persist(
  signal: AbortSignal,
  deed: (waits: { reset(): void }) => Promise<true | number>,
  onWait: () => void = () => {},
): Promise<void> {
  let wait = FIRST_WAIT;
  const waits = { reset: () => void (wait = FIRST_WAIT) };
  while (!signal.aborted) {
    let asked = 0;
    try {
      const done = await deed(waits);
      if (done === true) return;
      // One that is sent away again and again, at once each time, is to wait like everybody else.
      if (done && wait === FIRST_WAIT) asked = -done;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ServerError) {
        if (!error.isAway) throw error;
        asked = Math.min(error.retryAfter * 1000, LONGEST_ASKED);
      }
    }
    if (signal.aborted) return;
    onWait();
    await pause(asked < 0 ? -asked * Math.random() : Math.max(asked, wait * (0.5 + Math.random() / 2)), signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

/** Let time pass; less, when the signal says so or the machine is back in its network. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
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
