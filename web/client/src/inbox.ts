/** Inbox: open gates and active sessions of the whole tenant, over one stream for all tabs.
 *
 * The tab that holds a Web Lock reads the stream and broadcasts to the others; when it closes, the lock goes to the next tab.
 * Without Web Locks (plain http from another machine) each tab reads for itself while it is visible.
 */
import type { Everturn } from "./client.js";
import { Topics } from "./topics.js";
import type { GateView, InboxItem, SessionView } from "./types.gen.js";

/** Message between tabs: the reader broadcasts items and its connection status; a new tab asks for the current state. */
interface TabMessage {
  readonly item?: InboxItem;
  readonly isOpen?: boolean;
  readonly asks?: true;
}

export class InboxFollower {
  gates: GateView[] = [];
  /** Sessions that changed since this started, by id. */
  sessions = new Map<string, SessionView>();
  isOpen = false;
  /** Whether this tab reads the stream. */
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

  /** Whether tabs share one stream; then it stays open while the tab is hidden. */
  get isShared(): boolean {
    return Boolean(this.locks) && typeof BroadcastChannel !== "undefined";
  }

  start(): void {
    if (this.isShared) this.resume();
    else this.client.attach(this);
  }

  pause(): void {
    this.client.detach(this);
  }

  resume(): void {
    if (this.stop) return;
    this.stop = new AbortController();
    const { signal } = this.stop;
    if (!this.isShared) return void this.read(signal);
    const name = `everturn-inbox ${this.client.base}`;
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data }) => this.receive(data as TabMessage);
    this.broadcast({ asks: true });
    // Rejected when the signal comes before the lock; nothing else ends it.
    this.locks!.request(name, { signal }, () => this.read(signal)).catch(() => {});
  }

  suspend(): void {
    this.stop?.abort();
    this.stop = null;
    this.channel?.close();
    this.channel = null;
    this.setOpen(false);
  }

  private async read(signal: AbortSignal): Promise<void> {
    this.isReader = true;
    try {
      await this.client.inbox({
        signal,
        onStatus: (status) => {
          if (signal.aborted) return;
          this.setOpen(status === "open");
          this.broadcast({ isOpen: this.isOpen });
        },
        onMessage: (message) => {
          const item = JSON.parse(message.data) as InboxItem;
          if (item.end) return item.end === "revoked" ? true : "again";
          this.apply(item);
          this.broadcast({ item });
        },
      });
    } catch {
      // Refused for good; the client has called `onUnauthenticated`.
    } finally {
      this.isReader = false;
      if (this.stop?.signal === signal) this.suspend(); // to be started again after a login
    }
  }

  private broadcast(word: TabMessage): void {
    this.channel?.postMessage(word);
  }

  private receive(word: TabMessage): void {
    if (word.asks && this.isReader) {
      this.broadcast({ item: { snapshot: { gates: this.gates, awake: [...this.sessions.values()], next: "" } }, isOpen: this.isOpen });
    }
    if (this.isReader) return;
    if (word.item) this.apply(word.item);
    if (word.isOpen !== undefined) this.setOpen(word.isOpen);
  }

  private setOpen(isOpen: boolean): void {
    this.isOpen = isOpen;
    this.topics.touch("connection");
  }

  /** Apply one message of the stream. */
  apply(item: InboxItem): void {
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
