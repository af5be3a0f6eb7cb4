/** Session list: pages from the server, merged with live updates of the inbox. */
import type { InboxFollower, SessionPage, SessionView } from "@everturn/client";
import { Store } from "../app/store";

const PAGE_SIZE = 60;
const INBOX_TIMEOUT = 1500; // milliseconds to wait for the inbox before the list is loaded without it; then it is loaded again

export class SessionList {
  /** Top-level sessions, the last one changed first. */
  readonly visible = new Store<readonly SessionView[]>([]);
  readonly state = new Store<"idle" | "loading" | "failed" | "whole">("idle");
  private readonly paged = new Map<string, SessionView>();
  private readonly erased = new Set<string>();
  private next = "";

  constructor(
    private readonly fetchPage: (limit: number, before: string) => Promise<SessionPage>,
    private readonly inbox: Pick<InboxFollower, "sessions" | "subscribe" | "isOpen">,
  ) {
    inbox.subscribe("sessions", () => this.update());
    let wasOpen = inbox.isOpen;
    inbox.subscribe("connection", () => {
      if (inbox.isOpen && !wasOpen && this.paged.size) void this.refresh();
      wasOpen = inbox.isOpen;
    });
  }

  /** Load the newest sessions again: they may have changed while the inbox was disconnected. */
  async refresh(): Promise<void> {
    try {
      for (const session of (await this.fetchPage(PAGE_SIZE, "")).sessions) this.paged.set(session.id, session);
      this.update();
    } catch {
      // What was loaded before is still good.
    }
  }

  /** Load one more page. */
  async loadMore(): Promise<void> {
    if (this.state.value === "loading" || this.state.value === "whole") return;
    this.state.set("loading");
    if (!this.paged.size) await this.waitForInbox();
    try {
      const page = await this.fetchPage(PAGE_SIZE, this.next);
      for (const session of page.sessions) this.paged.set(session.id, session);
      this.next = page.next;
      this.update();
      this.state.set(page.next ? "idle" : "whole");
    } catch {
      this.state.set("failed");
    }
  }

  /** Wait until the inbox stream is open. What is loaded after that stays complete. */
  private waitForInbox(): Promise<void> {
    if (this.inbox.isOpen) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(done, INBOX_TIMEOUT);
      const unsubscribe = this.inbox.subscribe("connection", () => this.inbox.isOpen && done());
      function done(): void {
        clearTimeout(timer);
        unsubscribe();
        resolve();
      }
    });
  }

  /** Add an imported session. */
  add(session: SessionView): void {
    this.paged.set(session.id, session);
    this.update();
  }

  /** Remove an erased session. */
  remove(id: string): void {
    this.erased.add(id);
    this.update();
  }

  get(id: string): SessionView | undefined {
    return newerOf(this.inbox.sessions.get(id), this.paged.get(id));
  }

  private update(): void {
    const all = new Set([...this.paged.keys(), ...this.inbox.sessions.keys()]);
    const found: SessionView[] = [];
    for (const id of all) {
      const session = this.get(id);
      if (session && !session.parent && !this.erased.has(id)) found.push(session);
    }
    this.visible.set(found.sort((a, b) => b.updated - a.updated || (a.id < b.id ? 1 : -1)));
  }
}

function newerOf(left: SessionView | undefined, right: SessionView | undefined): SessionView | undefined {
  if (!left || !right) return left ?? right;
  return left.updated >= right.updated ? left : right;
}

/** The top-level session: the session of a sub-agent run is named after its parent. */
export function topSession(session: string): string {
  return session.split("-", 1)[0]!;
}
