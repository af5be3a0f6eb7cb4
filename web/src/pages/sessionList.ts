/** Session list: pages from the server, merged with live updates of the inbox. */
import type { InboxFollower, SessionPage, SessionView } from "@everturn/client";
import { Store } from "../app/store";

const PAGE_SIZE = 60;
const INBOX_TIMEOUT = 1500; // milliseconds to wait for the inbox before the list is loaded without it; then it is loaded again

export class SessionList {
  /** Top-level sessions, the last one changed first, without archived ones. */
  readonly visible = new Store<readonly SessionView[]>([]);
  /** Archived sessions that are known. */
  readonly archived = new Store<readonly SessionView[]>([]);
  readonly state = new Store<"idle" | "loading" | "failed" | "whole">("idle");
  private readonly paged = new Map<string, SessionView>();
  private readonly erased = new Set<string>();
  /** What this page changed, until the inbox tells of the change: both have the same time. */
  private readonly changed = new Map<string, { view: SessionView; before: SessionView | undefined }>();
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
      this.keep(await this.fetchPage(PAGE_SIZE, ""));
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
      this.keep(page);
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

  /** Take the sessions of a page. */
  keep(page: SessionPage): void {
    for (const session of [...(page.pinned ?? []), ...page.sessions]) this.paged.set(session.id, session);
    this.update();
  }

  /** Show what this page has changed of a session. */
  change(view: SessionView): void {
    this.changed.set(view.id, { view, before: this.inbox.sessions.get(view.id) });
    this.paged.set(view.id, view);
    this.update();
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
    const changed = this.changed.get(id);
    const told = this.inbox.sessions.get(id);
    if (changed && changed.before === told) return changed.view;
    if (changed) this.changed.delete(id);
    return newerOf(told, this.paged.get(id));
  }

  private update(): void {
    const all = new Set([...this.paged.keys(), ...this.inbox.sessions.keys()]);
    const found: SessionView[] = [];
    for (const id of all) {
      const session = this.get(id);
      if (session?.is_listed && !session.parent && !this.erased.has(id)) found.push(session);
    }
    found.sort((a, b) => b.updated - a.updated || (a.id < b.id ? 1 : -1));
    this.visible.set(found.filter((session) => !session.archived));
    this.archived.set(found.filter((session) => session.archived));
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

export type GroupName = "pinned" | "today" | "yesterday" | "week" | "month" | "older";

/** Sessions as the list shows them: pinned ones first, then by the day of their last change, in local time. */
export function groupSessions(all: readonly SessionView[], now: Date): readonly { name: GroupName; sessions: readonly SessionView[] }[] {
  const midnight = (daysAgo: number) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo).getTime() / 1000;
  const bounds: readonly (readonly [GroupName, number])[] = [["today", midnight(0)], ["yesterday", midnight(1)], ["week", midnight(7)], ["month", midnight(30)], ["older", -Infinity]];
  const groups = new Map<GroupName, SessionView[]>();
  for (const name of ["pinned", ...bounds.map(([name]) => name)] as const) groups.set(name, []);
  for (const session of all) groups.get(session.pinned ? "pinned" : bounds.find(([, from]) => session.updated >= from)![0])!.push(session);
  return [...groups].filter(([, sessions]) => sessions.length).map(([name, sessions]) => ({ name, sessions }));
}

const MAX_LABELS = 2;

/** Labels beside a title, which needs its room: two, or the first and how many more there are. */
export function shownLabels(labels: readonly string[] = []): readonly string[] {
  return labels.length > MAX_LABELS ? [labels[0]!, `+${labels.length - 1}`] : labels;
}
