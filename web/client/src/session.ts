/** Session follower: loads and folds the log of one session, then follows its event stream until it is paused. */
import type { Everturn } from "./client.js";
import { ServerError } from "./errors.js";
import { addEarlier, apply, applyDelta, applyProgress, emptySession } from "./fold.js";
import type { SessionState } from "./state.js";
import { retryUntilDone, type StreamStatus, type MessageOutcome } from "./stream.js";
import type { StreamMessage } from "./sse.js";
import type { StreamItem } from "./types.gen.js";
import { Topics, type Topic } from "./topics.js";

/** `lost`: the connection broke and is retried; `gone`: the session was erased, or access to it was revoked. */
export type Connection = "loading" | "open" | "lost" | "paused" | "gone";

export class SessionFollower {
  state: SessionState = emptySession();
  connection: Connection = "loading";
  /** Why the session is gone. */
  problem: ServerError | null = null;
  readonly topics: Topics;
  // Always the cursor of exactly what was folded. A cursor without live parts, or the other way round, would lose
  // characters or duplicate them.
  private cursor = "";
  private stop: AbortController | null = null;
  private isLoadingEarlier = false;

  constructor(
    readonly client: Everturn,
    readonly id: string,
    schedule?: (run: () => void) => void,
  ) {
    this.topics = new Topics(schedule);
  }

  subscribe = (topic: Topic, listener: () => void): (() => void) => this.topics.subscribe(topic, listener);

  /** Load the log and follow the stream. Does nothing while it already follows. */
  start(): void {
    this.client.attach(this);
  }

  /** Close the connection; `start` continues from here. A running turn keeps running. */
  pause(): void {
    this.client.detach(this);
  }

  /** Close the connection while the client is suspended. */
  suspend(): void {
    if (!this.stop) return;
    this.stop.abort();
    this.stop = null;
    this.setConnection("paused");
  }

  /** Reconnect when the client resumes. */
  resume(): void {
    if (this.stop) return;
    this.stop = new AbortController();
    this.problem = null;
    void this.run(this.stop.signal);
  }

  private async run(signal: AbortSignal): Promise<void> {
    if (!this.cursor) this.setConnection("loading");
    const onStatus = (status: StreamStatus) => {
      if (signal.aborted) return;
      if (status === "open") this.setConnection("open");
      if (status === "waiting") this.setConnection("lost");
    };
    try {
      if (!this.cursor) await retryUntilDone(signal, () => this.load(signal), () => onStatus("waiting"));
      if (signal.aborted) return;
      const onMessage = (message: StreamMessage) => this.receive(message);
      await this.client.events(this.id, { after: this.cursor, signal, onStatus, onMessage });
    } catch (error) {
      if (!signal.aborted) this.fail(error instanceof ServerError ? error : new ServerError(0, "broken", String(error)));
    }
  }

  private async load(signal: AbortSignal): Promise<true> {
    const page = await this.client.logTail(this.id);
    if (signal.aborted) return true;
    const state = emptySession();
    state.start = page.start;
    for (const { seq, event } of page.entries) apply(state, seq, event, this.touch);
    Object.assign(state, { seq: page.seq, leaf: page.leaf ?? null, title: page.title ?? "" });
    this.state = state;
    this.cursor = String(page.seq);
    this.topics.touch("tree");
    return true;
  }

  /** Whether there are turns before those that are loaded. */
  get hasEarlier(): boolean {
    return this.state.start > 1;
  }

  /** Load the turns before those that are loaded. Does nothing while it already loads, or when all are loaded. */
  async loadEarlier(): Promise<void> {
    const { state } = this;
    if (this.isLoadingEarlier || state.start <= 1) return;
    this.isLoadingEarlier = true;
    try {
      const page = await this.client.logTail(this.id, state.start);
      if (state === this.state) addEarlier(state, page, this.touch);
    } finally {
      this.isLoadingEarlier = false;
    }
  }

  /** The selected branch ends at a message that is not loaded: load the end of the log again. */
  private reload(): "again" {
    this.stop?.abort();
    this.stop = null;
    this.cursor = "";
    this.resume();
    return "again";
  }

  private receive(message: StreamMessage): MessageOutcome {
    const item = JSON.parse(message.data) as StreamItem;
    if (item.end) return this.receiveEnd(item.end);
    if (message.id) this.cursor = message.id; // before it is folded: a listener may pause this at once
    if (item.delta) applyDelta(this.state, item.delta, this.touch);
    else if (item.event) {
      // Our cursor does not exist there: the log was restored from an older copy. Start from its beginning.
      if (item.seq === 1 && this.state.seq) this.state = emptySession();
      apply(this.state, item.seq ?? 0, item.event, this.touch);
      const { leaf, messages, start } = this.state;
      const moves = item.event.type === "LeafSelected" || item.event.type === "MessageDeleted";
      if (moves && start > 1 && leaf !== null && !messages.has(leaf)) return this.reload();
    } else if (item.progress) applyProgress(this.state, item.progress, this.touch);
  }

  private receiveEnd(end: StreamItem["end"]): MessageOutcome {
    if (end === "drain" || end === "slow") return "again";
    if (end !== "erased" && end !== "revoked" && end !== "unshared") return "later";
    this.fail(new ServerError(end === "erased" ? 404 : 403, end, `the session was ${end}`));
    return true;
  }

  private fail(problem: ServerError): void {
    this.stop = null; // so that `start` tries again
    this.problem = problem;
    this.setConnection("gone");
  }

  private touch = (topic: Topic): void => this.topics.touch(topic);

  private setConnection(connection: Connection): void {
    this.connection = connection;
    this.topics.touch("connection");
  }
}
