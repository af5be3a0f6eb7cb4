/** The sessions of the list: pages of what the server has, and what has moved since. */
import type { InboxFollower, SessionPage, SessionView } from "@everturn/client";
import { Store } from "../app/store";

const PAGE = 60;
const PATIENCE = 1500; // milliseconds after which the list is read although nobody tells what moves; then it is read again

export class SessionList {
  /** Those that a person began, the last one touched first. */
  readonly shown = new Store<readonly SessionView[]>([]);
  readonly state = new Store<"idle" | "loading" | "failed" | "whole">("idle");
  private readonly paged = new Map<string, SessionView>();
  private readonly gone = new Set<string>();
  private next = "";

  constructor(
    private readonly read: (limit: number, before: string) => Promise<SessionPage>,
    private readonly inbox: Pick<InboxFollower, "sessions" | "subscribe" | "isOpen">,
  ) {
    inbox.subscribe("sessions", () => this.put());
    let wasOpen = inbox.isOpen;
    inbox.subscribe("connection", () => {
      if (inbox.isOpen && !wasOpen && this.paged.size) void this.refresh();
      wasOpen = inbox.isOpen;
    });
  }

  /** Read the newest ones again: they may have moved while nobody told of it. */
  async refresh(): Promise<void> {
    try {
      for (const session of (await this.read(PAGE, "")).sessions) this.paged.set(session.id, session);
      this.put();
    } catch {
      // What was read before is still good.
    }
  }

  /** Read one page more. */
  async more(): Promise<void> {
    if (this.state.value === "loading" || this.state.value === "whole") return;
    this.state.set("loading");
    if (!this.paged.size) await this.opened();
    try {
      const page = await this.read(PAGE, this.next);
      for (const session of page.sessions) this.paged.set(session.id, session);
      this.next = page.next;
      this.put();
      this.state.set(page.next ? "idle" : "whole");
    } catch {
      this.state.set("failed");
    }
  }

  /** Wait until the stream of what moves is open. What is read after that never has to be read again to be complete. */
  private opened(): Promise<void> {
    if (this.inbox.isOpen) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(done, PATIENCE);
      const leave = this.inbox.subscribe("connection", () => this.inbox.isOpen && done());
      function done(): void {
        clearTimeout(timer);
        leave();
        resolve();
      }
    });
  }

  /** A session that is new here: brought in from a file. */
  add(session: SessionView): void {
    this.paged.set(session.id, session);
    this.put();
  }

  /** A session that was erased. */
  forget(id: string): void {
    this.gone.add(id);
    this.put();
  }

  get(id: string): SessionView | undefined {
    return newer(this.inbox.sessions.get(id), this.paged.get(id));
  }

  private put(): void {
    const all = new Set([...this.paged.keys(), ...this.inbox.sessions.keys()]);
    const found: SessionView[] = [];
    for (const id of all) {
      const session = this.get(id);
      if (session && !session.above && !this.gone.has(id)) found.push(session);
    }
    this.shown.set(found.sort((a, b) => b.touched - a.touched || (a.id < b.id ? 1 : -1)));
  }
}

function newer(one: SessionView | undefined, other: SessionView | undefined): SessionView | undefined {
  if (!one || !other) return one ?? other;
  return one.touched >= other.touched ? one : other;
}

/** The session at the top, that a person began: a sub-turn's is named after the one above it. */
export function topOf(session: string): string {
  return session.split("-", 1)[0]!;
}
