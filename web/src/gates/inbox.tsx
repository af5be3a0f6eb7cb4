/** Inbox page: the open gates of all sessions. */
import type { GateView } from "@everturn/client";
import { useRef, useState } from "preact/hooks";
import { inbox, hasRole } from "../app/app";
import { hrefFor } from "../app/route";
import { useTopics } from "../app/store";
import { sessionTitle } from "../app/titles";
import { format } from "../app/texts";
import { Badge, Button, Icon } from "../ui/components";
import { GateCard } from "./gateCard";
import { escapeInvisible } from "./invisibleChars";
import { isTypingIn, nextIndex } from "./keys";
import "./inbox.css";
import { useTexts } from "../locales/inbox.gen";

export interface SessionGates {
  readonly session: string;
  readonly title: string;
  readonly gates: readonly GateView[];
}

/** Group by session, in the same order within and among groups. */
export function groupBySession(gates: readonly GateView[], isNewest: boolean): SessionGates[] {
  const found = new Map<string, GateView[]>();
  const sorted = [...gates].sort((a, b) => (isNewest ? b.opened - a.opened : a.opened - b.opened));
  for (const gate of sorted) found.set(gate.session, [...(found.get(gate.session) ?? []), gate]);
  return [...found].map(([session, gateViews]) => ({ session, title: gateViews[0]!.title, gates: gateViews }));
}

export function Inbox() {
  const t = useTexts();
  useTopics(inbox, "gates", "connection");
  const [isNewest, setNewest] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const personGates = inbox.gates.filter((gateView) => gateView.gate.kind !== "client");
  const clientGates = inbox.gates.filter((gateView) => gateView.gate.kind === "client");
  const onKeyDown = (event: KeyboardEvent) => {
    if (isTypingIn(event.target) || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = [...(root.current?.querySelectorAll<HTMLElement>(".gate[data-open]") ?? [])];
    const index = all.findIndex((element) => element.contains(document.activeElement));
    const to = nextIndex(event.key, index, all.length);
    if (to === null) return;
    event.preventDefault();
    all[to]?.focus();
    all[to]?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div class="page inbox" ref={root} tabIndex={-1} onKeyDown={onKeyDown}>
      <div class="inner">
        <div class="row wrap head">
          <h1 class="grow">{t.title} {personGates.length > 0 && <Badge tone="warn">{t.count(personGates.length)}</Badge>}</h1>
          {personGates.length > 1 && <Button little kind="quiet" onClick={() => setNewest(!isNewest)}>{isNewest ? t.newest : t.oldest}</Button>}
        </div>
        {personGates.length > 1 && hasRole("approver") && <p class="small muted keys">{t.keys}</p>}
        {!inbox.gates.length && (inbox.isOpen ? <EmptyInbox /> : <p class="muted">{t.lost}</p>)}
        {groupBySession(personGates, isNewest).map((group) => <SessionSection key={group.session} group={group} />)}
        {clientGates.length > 0 && <h2 class="programs">{t.programs}</h2>}
        {groupBySession(clientGates, isNewest).map((group) => <SessionSection key={group.session} group={group} />)}
      </div>
    </div>
  );
}

function EmptyInbox() {
  const t = useTexts();
  return (
    <div class="empty">
      <Icon name="inbox" />
      <p>{t.empty}</p>
      <p class="small muted">{t.emptyWhy}</p>
    </div>
  );
}

function SessionSection({ group }: { group: SessionGates }) {
  const t = useTexts();
  return (
    <section class="session-gates" aria-label={escapeInvisible(sessionTitle(group.session, group.title)) || t.untitled}>
      <div class="row wrap">
        <h2 class="grow"><a href={hrefFor({ page: "session", session: group.session })} title={t.open} dir="auto">{escapeInvisible(sessionTitle(group.session, group.title)) || t.untitled}</a></h2>
        <span class="small muted" title={format.moment(group.gates[0]!.opened)}>{t.since(format.ago(group.gates[0]!.opened))}</span>
      </div>
      {group.gates.map(({ gate, opened, claim, session, title }) => (
        <GateCard key={gate.id} session={session} title={title} gateState={{ gate, opened, claim, resolution: null, answered: 0, grant: null }} />
      ))}
    </section>
  );
}
