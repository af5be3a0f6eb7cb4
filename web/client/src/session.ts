/** One session, followed: its log is read, folded, and then its stream, for as long as somebody looks. */
import type { Everturn } from "./client.js";
import { ServerError } from "./errors.js";
import { apply, applyDelta, applyProgress, emptySession } from "./fold.js";
import type { SessionState } from "./state.js";
import { persist, type Standing, type Taken } from "./stream.js";
import type { StreamMessage } from "./sse.js";
import type { Item } from "./types.gen.js";
import { Topics } from "./topics.js";

/** `lost`: the connection broke and is sought again; `gone`: the session is no more, or no longer ours to see. */
export type Connection = "loading" | "open" | "lost" | "paused" | "gone";

/** What may change: the shape of the tree, one message, one turn (with its calls and gates), its live parts, the connection; "*" is any. */
export type Topic = "*" | "tree" | "connection" | `message:${string}` | `turn:${string}` | `live:${string}`;

export class SessionFollower {
  state: SessionState = emptySession();
  connection: Connection = "loading";
  /** Why it is gone. */
  problem: ServerError | null = null;
  readonly topics: Topics;
  // Always the cursor of exactly what was folded. A cursor without live parts, or the other way round, would lose
  // characters or have them twice.
  private cursor = "";
  private stop: AbortController | null = null;

  constructor(
    readonly client: Everturn,
    readonly id: string,
    schedule?: (run: () => void) => void,
  ) {
    this.topics = new Topics(schedule);
  }

  subscribe = (topic: Topic, listener: () => void): (() => void) => this.topics.subscribe(topic, listener);

  /** Read the log and follow what comes. Does nothing while it follows already. */
  start(): void {
    this.client.enter(this);
  }

  /** Let the connection go; `start` goes on where this left off. A turn that runs goes on running. */
  pause(): void {
    this.client.leave(this);
  }

  /** Let the connection go for now, as the client says. */
  rest(): void {
    if (!this.stop) return;
    this.stop.abort();
    this.stop = null;
    this.set("paused");
  }

  /** Follow, as the client says. */
  wake(): void {
    if (this.stop) return;
    this.stop = new AbortController();
    this.problem = null;
    void this.run(this.stop.signal);
  }

  private async run(signal: AbortSignal): Promise<void> {
    if (!this.cursor) this.set("loading");
    const onStanding = (standing: Standing) => {
      if (signal.aborted) return;
      if (standing === "open") this.set("open");
      if (standing === "waiting") this.set("lost");
    };
    try {
      if (!this.cursor) await persist(signal, () => this.load(signal), () => onStanding("waiting"));
      if (signal.aborted) return;
      const onMessage = (message: StreamMessage) => this.hear(message);
      await this.client.events(this.id, { after: this.cursor, signal, onStanding, onMessage });
    } catch (error) {
      if (!signal.aborted) this.end(error instanceof ServerError ? error : new ServerError(0, "broken", String(error)));
    }
  }

  private async load(signal: AbortSignal): Promise<true> {
    for (let isWhole = false; !isWhole; ) {
      const page = await this.client.log(this.id, this.state.seq);
      if (signal.aborted) return true;
      for (const { seq, event } of page.entries) apply(this.state, seq, event, this.touch);
      isWhole = page.is_whole;
    }
    this.cursor = String(this.state.seq);
    this.topics.touch("tree");
    return true;
  }

  private hear(message: StreamMessage): Taken {
    const item = JSON.parse(message.data) as Item;
    if (item.end) return this.hearEnd(item.end);
    if (message.id) this.cursor = message.id; // before it is folded: whoever is told of it may pause this at once
    if (item.delta) applyDelta(this.state, item.delta, this.touch);
    else if (item.event) {
      // Our cursor was of no place there: the log is another one, brought back from an older copy. It is shown from its beginning.
      if (item.seq === 1 && this.state.seq) this.state = emptySession();
      apply(this.state, item.seq ?? 0, item.event, this.touch);
    } else if (item.progress) applyProgress(this.state, item.progress, this.touch);
  }

  private hearEnd(end: Item["end"]): Taken {
    if (end === "drain" || end === "slow") return "again";
    if (end !== "erased" && end !== "revoked") return "later";
    this.end(new ServerError(end === "erased" ? 404 : 403, end, `the session was ${end}`));
    return true;
  }

  private end(problem: ServerError): void {
    this.stop = null; // whoever starts it once more has it looked for again
    this.problem = problem;
    this.set("gone");
  }

  private touch = (topic: Topic): void => this.topics.touch(topic);

  private set(connection: Connection): void {
    this.connection = connection;
    this.topics.touch("connection");
  }
}
