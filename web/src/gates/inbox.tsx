/** Inbox page: the open gates of all sessions, grouped and filtered, one by one or many at once. */
import type { GateView } from "@everturn/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { inbox, hasRole } from "../app/app";
import { hrefFor } from "../app/route";
import { settings } from "../app/settings";
import { useStore, useTopics } from "../app/store";
import { sessionTitle } from "../app/titles";
import { format } from "../app/texts";
import { Badge, Button, Icon } from "../ui/components";
import { COMPACT_FROM, filterGates, groupGates, isBatchable, takeGates, type GateGroup, type Grouping } from "./batch";
import { Density, GateBatch } from "./gateBatch";
import { GateCardView } from "./gateCardView";
import { OPEN_GATES } from "./focus";
import { escapeInvisible } from "./invisibleChars";
import { isTypingIn, nextIndex } from "./keys";
import "./inbox.css";
import { useTexts } from "../locales/inbox.gen";

const PAGE = 50; // gates that are drawn at once; more as one scrolls
const NONE: readonly GateView[] = [];
const FILTER_FROM = 6; // gates from which there are filters

export function Inbox() {
  const t = useTexts();
  useTopics(inbox, "gates", "connection");
  const density = useStore(settings).gates;
  const [isNewest, setNewest] = useState(false);
  const [by, setBy] = useState<Grouping>("session");
  const [tool, setTool] = useState("");
  const [text, setText] = useState("");
  const [count, setCount] = useState(PAGE);
  const root = useRef<HTMLDivElement>(null);
  const all = inbox.gates;
  const personGates = useMemo(() => all.filter((gateView) => gateView.gate.kind !== "client"), [all]);
  const shown = useMemo(() => filterGates(personGates, tool, text), [personGates, tool, text]);
  const groups = useMemo(() => groupGates(shown, by, isNewest, agentOf), [shown, by, isNewest]);
  const clientGroups = useMemo(() => groupGates(all.filter((gateView) => gateView.gate.kind === "client"), "session", isNewest, agentOf), [all, isNewest]);
  const tools = useMemo(() => [...new Set(personGates.map(({ gate }) => gate.tool))].sort(), [personGates]);
  const hasFilters = personGates.length >= FILTER_FROM || tool !== "" || text !== "";
  const isRows = density !== "full" && personGates.length >= COMPACT_FROM;
  const onKeyDown = (event: KeyboardEvent) => {
    if (isTypingIn(event.target) || event.ctrlKey || event.altKey || event.metaKey) return;
    const gates = [...(root.current?.querySelectorAll<HTMLElement>(OPEN_GATES) ?? [])];
    const index = gates.findIndex((element) => element.contains(document.activeElement));
    const to = nextIndex(event.key, index, gates.length);
    if (to === null) return;
    event.preventDefault();
    gates[to]?.focus();
    gates[to]?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div class="page inbox" ref={root} tabIndex={-1} onKeyDown={onKeyDown}>
      <div class="inner">
        <div class="row wrap head">
          <h1 class="grow">{t.title} {personGates.length > 0 && <Badge tone="warn">{t.count(personGates.length)}</Badge>}</h1>
          {personGates.length >= COMPACT_FROM && <Density />}
          {personGates.length > 1 && <Button little onClick={() => setNewest(!isNewest)}>{isNewest ? t.newest : t.oldest}</Button>}
        </div>
        {hasFilters && (
          <div class="row wrap filters">
            <label class="row small">{t.groupBy}
              <select class="input" value={by} onChange={(event) => setBy(event.currentTarget.value as Grouping)}>
                <option value="session">{t.bySession}</option>
                <option value="tool">{t.byTool}</option>
                <option value="agent">{t.byAgent}</option>
              </select>
            </label>
            <select class="input" aria-label={t.byTool} value={tool} onChange={(event) => setTool(event.currentTarget.value)}>
              <option value="">{t.anyTool}</option>
              {tools.map((name) => <option key={name} value={name}>{escapeInvisible(name)}</option>)}
            </select>
            <input class="input grow" type="search" aria-label={t.filter} placeholder={t.filterHint} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </div>
        )}
        {personGates.length > 1 && hasRole("approver") && <p class="small muted keys">{t.keys}</p>}
        {!all.length && (inbox.isOpen ? <EmptyInbox /> : <p class="muted">{t.lost}</p>)}
        {personGates.length > 0 && !shown.length && <p class="muted">{t.none}</p>}
        <GateBatch items={groups.length > 1 ? shown : NONE} />
        {takeGates(groups, count).map((group, index) => <GroupSection key={group.key} group={group} by={by} isRows={isRows} whole={groups[index]!.gates} />)}
        {count < shown.length && <MoreButton label={`${t.more(Math.min(PAGE, shown.length - count))} (${t.shown(count, shown.length)})`} onMore={() => setCount((before) => before + PAGE)} />}
        {clientGroups.length > 0 && <h2 class="programs">{t.programs}</h2>}
        {takeGates(clientGroups, count).map((group) => <GroupSection key={group.key} group={group} by="session" isRows={false} whole={group.gates} />)}
      </div>
    </div>
  );
}

/** The agent of a session; "": not known, or not for this user. */
function agentOf(session: string): string {
  return inbox.sessions.get(session)?.agent ?? "";
}

/** Draws more when it comes into view; a click does the same. */
function MoreButton({ label, onMore }: { label: string; onMore: () => void }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && onMore(), { rootMargin: "600px" });
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, [label]);
  return <div class="more" ref={ref}><Button little onClick={onMore}>{label}</Button></div>;
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

const titleOf = ({ session, title }: GateView, untitled: string) => escapeInvisible(sessionTitle(session, title)) || untitled;

/** `whole`: all gates of the group, of which `group` has those that are drawn. */
function GroupSection({ group, by, isRows, whole }: { group: GateGroup; by: Grouping; isRows: boolean; whole: readonly GateView[] }) {
  const t = useTexts();
  const first = group.gates[0]!;
  const name = by === "session" ? titleOf(first, t.untitled) : by === "tool" ? escapeInvisible(group.key) : escapeInvisible(group.key) || t.noAgent;
  return (
    <section class="session-gates" aria-label={name}>
      <div class="row wrap">
        <h2 class="grow">
          {by === "session" ? <a href={hrefFor({ page: "session", session: group.key })} title={t.open} dir="auto">{name}</a> : <span dir="auto">{name}</span>}
          {whole.length > 1 && <span class="small muted"> {t.count(whole.length)}</span>}
        </h2>
        <span class="small muted" title={format.moment(first.opened)}>{t.since(format.ago(first.opened))}</span>
      </div>
      <GateBatch items={whole} label={name} />
      <div class={isRows ? "gate-rows" : ""}>
        {group.gates.map((view) => (
          <GateCardView key={view.gate.id} session={view.session} title={by === "session" && isBatchable(view.gate) && isRows ? undefined : view.title} isRow={isRows}
            gateState={{ gate: view.gate, opened: view.opened, claim: view.claim, resolution: null, answered: 0, grant: null }} />
        ))}
      </div>
    </section>
  );
}
