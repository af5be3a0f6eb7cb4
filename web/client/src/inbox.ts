/** What waits for somebody in the whole tenant, and what is under way: one stream, however many tabs look.
 *
 * The tab that holds a lock of the browser reads it and tells the others; when it is closed the lock goes to the next one.
 * Where there are no locks (plain http that is not of this machine) each tab reads for itself, while somebody looks at it.
 */
import type { Everturn } from "./client.js";
import { Topics } from "./topics.js";
import type { GateView, InboxItem, SessionView } from "./types.gen.js";

/** What tabs say to each other: the one that reads, what came or how it stands; one that is new, that it knows nothing yet. */
interface Word {
  readonly item?: InboxItem;
  readonly isOpen?: boolean;
  readonly asks?: true;
}

export class InboxFollower {
  gates: GateView[] = [];
  /** Sessions that have moved since this began, by id. */
  sessions = new Map<string, SessionView>();
  isOpen = false;
  /** Whether it is this tab that reads. */
  isReader = false;
  readonly topics = new Topics();
  private stop: AbortController | null = null;
  private channel: BroadcastChannel | null = null;

  constructor(
    readonly client: Everturn,
    private readonly locks: Pick<LockManager, "request"> | undefined = globalThis.navigator?.locks,
  ) {}

  /** Topics: "gates", "sessions", "connection". */
  subscribe = (topic: string, listener: () => void) => this.topics.subscribe(topic, listener);

  /** Whether other tabs read for this one, or it for them; then it goes on while nobody looks. */
  get isShared(): boolean {
    return Boolean(this.locks) && typeof BroadcastChannel !== "undefined";
  }

  start(): void {
    if (this.isShared) this.wake();
    else this.client.enter(this);
  }

  pause(): void {
    this.client.leave(this);
  }

  wake(): void {
    if (this.stop) return;
    this.stop = new AbortController();
    const { signal } = this.stop;
    if (!this.isShared) return void this.read(signal);
    const name = `everturn-inbox ${this.client.base}`;
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data }) => this.hear(data as Word);
    this.say({ asks: true });
    // Refused when the signal comes before the lock; nothing else ends it.
    this.locks!.request(name, { signal }, () => this.read(signal)).catch(() => {});
  }

  rest(): void {
    this.stop?.abort();
    this.stop = null;
    this.channel?.close();
    this.channel = null;
    this.stand(false);
  }

  private async read(signal: AbortSignal): Promise<void> {
    this.isReader = true;
    try {
      await this.client.inbox({
        signal,
        onStanding: (standing) => {
          if (signal.aborted) return;
          this.stand(standing === "open");
          this.say({ isOpen: this.isOpen });
        },
        onMessage: (message) => {
          const item = JSON.parse(message.data) as InboxItem;
          if (item.end) return item.end === "revoked" ? true : "again";
          this.take(item);
          this.say({ item });
        },
      });
    } catch {
      // It was refused for good; the client has said so to whoever wants to know.
    } finally {
      this.isReader = false;
      if (this.stop?.signal === signal) this.rest(); // to be started again, after a login
    }
  }

  private say(word: Word): void {
    this.channel?.postMessage(word);
  }

  private hear(word: Word): void {
    if (word.asks && this.isReader) {
      this.say({ item: { snapshot: { gates: this.gates, awake: [...this.sessions.values()], next: "" } }, isOpen: this.isOpen });
    }
    if (this.isReader) return;
    if (word.item) this.take(word.item);
    if (word.isOpen !== undefined) this.stand(word.isOpen);
  }

  private stand(isOpen: boolean): void {
    this.isOpen = isOpen;
    this.topics.touch("connection");
  }

  /** Take one message in. */
  take(item: InboxItem): void {
    if (item.snapshot) {
      this.gates = [...item.snapshot.gates];
      for (const session of item.snapshot.awake) this.sessions.set(session.id, session);
    }
    if (item.session) this.sessions.set(item.session.id, item.session);
    if (item.session && item.waits) {
      const { id } = item.session;
      this.gates = [...this.gates.filter((gate) => gate.session !== id), ...item.waits];
    }
    this.topics.touch("gates");
    this.topics.touch("sessions");
  }
}
