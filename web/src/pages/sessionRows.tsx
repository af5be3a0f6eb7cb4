/** Rows of the session list: live, loaded page by page while scrolling. */
import { Component, Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SessionView } from "@everturn/client";
import { contextPanel, inbox, hasRole, getSessionFollower, me } from "../app/app";
import { lazy } from "../app/lazy";
import { hrefFor, route } from "../app/route";
import { useStore, useTopics } from "../app/store";
import { sessionTitle } from "../app/titles";
import { language, format } from "../app/texts";
import { Button, Icon, Menu, Spinner, type MenuItem } from "../ui/components";
import { groupSessions, shownLabels, topSession } from "./sessionList";
import { exportSession, loadArchived, sessions, updateSession } from "./sessions";
import { useTexts } from "../locales/sessionRows.gen";

const EraseDialog = lazy(async () => (await import("./eraseDialog")).EraseDialog);

export function SessionRows() {
  const t = useTexts();
  const all = useStore(sessions.visible);
  const state = useStore(sessions.state);
  const currentRoute = useStore(route);
  const currentLanguage = useStore(language);
  useTopics(inbox, "gates");
  const minute = useMinute();
  const [erased, setErased] = useState<SessionView | null>(null);
  const waiting = new Set(inbox.gates.filter(({ gate }) => gate.kind !== "client").map(({ session }) => topSession(session)));
  const currentSession = "session" in currentRoute ? topSession(currentRoute.session) : "";
  useTitleUpdates(currentSession);
  const archived = useStore(sessions.archived);
  const [showsArchived, setShowsArchived] = useState(false);
  const toggleArchived = () => {
    if (!showsArchived) void loadArchived();
    setShowsArchived(!showsArchived);
  };
  const row = (session: SessionView) => (
    <Row key={session.id} session={session} isCurrent={session.id === currentSession} hasOpenGate={waiting.has(session.id)} renderKey={`${currentLanguage} ${minute} ${sessionTitle(session.id, session.title)}`} onErase={setErased} />
  );
  return (
    <>
      <ul class="sessions" aria-label={t.list}>
        {groupSessions(all, new Date()).map(({ name, sessions }) => (
          <Fragment key={name}>
            <li class="group"><h2>{t[`group_${name}`]}</h2></li>
            {sessions.map(row)}
          </Fragment>
        ))}
        {showsArchived && archived.length > 0 && <li class="group"><h2>{t.group_archived}</h2></li>}
        {showsArchived && archived.map(row)}
      </ul>
      {showsArchived && !archived.length && <p class="empty small muted">{t.none_archived}</p>}
      {state === "whole" && !all.length && <p class="empty small muted">{t.none}</p>}
      <p class="empty"><Button little kind="quiet" icon="archive" aria-pressed={showsArchived} onClick={toggleArchived}>{showsArchived ? t.hide_archived : t.show_archived}</Button></p>
      {state === "failed" ? (
        <p class="empty small"><span class="muted">{t.failed}</span> <Button little onClick={() => void sessions.loadMore()}>{t.again}</Button></p>
      ) : (
        state !== "whole" && <LoadMore label={t.loading} />
      )}
      {erased && <EraseDialog session={erased} onClose={() => setErased(null)} />}
    </>
  );
}

/** The end of the loaded rows: when it comes near the viewport, the next page is loaded. */
function LoadMore({ label }: { label: string }) {
  const ref = useRef<HTMLDivElement>(null);
  const state = useStore(sessions.state);
  useEffect(() => {
    if (state !== "idle" || !ref.current) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && void sessions.loadMore(), { rootMargin: "400px" });
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, [state]);
  return <div class="more" ref={ref}>{state === "loading" && <Spinner label={label} />}</div>;
}

interface RowProps {
  session: SessionView;
  isCurrent: boolean;
  hasOpenGate: boolean;
  /** Language, minute and title: what else changes a row. */
  renderKey: string;
  onErase: (session: SessionView) => void;
}

/** One of perhaps a thousand: rendered again only when its props have changed. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { session, isCurrent, hasOpenGate, renderKey } = this.props;
    return session !== next.session || isCurrent !== next.isCurrent || hasOpenGate !== next.hasOpenGate || renderKey !== next.renderKey;
  }

  override render() {
    return <RowView {...this.props} />;
  }
}

function RowView({ session, isCurrent, hasOpenGate, onErase }: RowProps) {
  const t = useTexts();
  const title = sessionTitle(session.id, session.title) || t.untitled;
  const [edited, setEdited] = useState<"title" | "labels" | null>(null);
  const items: MenuItem[] = [];
  if (hasRole("member")) {
    const { id, pinned, archived, labels } = session;
    items.push(
      { label: t.rename, icon: "edit", onSelect: () => setEdited("title") },
      { label: pinned ? t.unpin : t.pin, icon: "pin", onSelect: () => void updateSession(id, { pinned: !pinned }) },
      { label: t.set_labels, icon: "tag", onSelect: () => setEdited("labels") },
      { label: archived ? t.unarchive : t.archive, icon: "archive", onSelect: () => void updateSession(id, { archived: !archived }, { text: archived ? t.unarchived : t.archived, label: t.undo, change: { archived } }) },
    );
    if (edited) {
      const isTitle = edited === "title";
      const save = (text: string) => {
        setEdited(null);
        if (isTitle && text && text !== title) void updateSession(id, { title: text });
        const names = text.split(",").map((label) => label.trim()).filter(Boolean);
        if (!isTitle && names.join() !== labels?.join()) void updateSession(id, { labels: names });
      };
      return <li class="session"><EditField label={isTitle ? t.title : t.labels} initial={isTitle ? title : (labels ?? []).join(", ")} onSave={save} onCancel={() => setEdited(null)} /></li>;
    }
  }
  if (hasRole("member")) items.push({ label: t.exported, icon: "download", onSelect: () => void exportSession(session.id, title) });
  if (hasRole("member")) items.push({ label: t.compact, icon: "compact", onSelect: () => contextPanel.set(session.id) });
  if (mayErase(session)) items.push({ label: t.erase, icon: "trash", onSelect: () => onErase(session) });
  return (
    <li class="session" data-here={isCurrent || undefined}>
      <a href={hrefFor({ page: "session", session: session.id })} aria-current={isCurrent ? "page" : undefined} title={title}>
        <span class="title ellipsis" dir="auto">{title}</span>
        {shownLabels(session.labels).map((label) => <span class="label ellipsis" dir="auto" title={session.labels?.join(", ")}>{label}</span>)}
        <StatusMark session={session} hasOpenGate={hasOpenGate} />
        <time class="when" dateTime={new Date(session.updated * 1000).toISOString()} title={format.moment(session.updated)}>{shortAge(session.updated) || t.now}</time>
      </a>
      {items.length > 0 && <Menu end button={{ icon: "more", label: t.more }} items={items} />}
    </li>
  );
}

/** Who started a session may erase it, and so may owners. */
function mayErase(session: SessionView): boolean {
  const user = me.value;
  return hasRole("owner") || (hasRole("member") && user !== null && user !== "anonymous" && user.user === session.by);
}

/** A field in place of a row: Enter and leaving it save, Esc does not. */
function EditField({ label, initial, onSave, onCancel }: { label: string; initial: string; onSave: (text: string) => void; onCancel: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const isDone = useRef(false);
  useLayoutEffect(() => field.current?.select(), []);
  const end = (save: boolean) => {
    if (isDone.current) return; // the field loses its focus when it is removed
    isDone.current = true;
    if (save) onSave(field.current!.value.trim());
    else onCancel();
  };
  return (
    <input ref={field} class="input" aria-label={label} defaultValue={initial} maxLength={200} dir="auto"
      onBlur={() => end(true)}
      onKeyDown={(event) => {
        if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
        event.preventDefault();
        event.stopPropagation();
        end(event.key === "Enter");
      }} />
  );
}

function StatusMark({ session, hasOpenGate }: { session: SessionView; hasOpenGate: boolean }) {
  const t = useTexts();
  if (session.quarantined) return <span class="mark bad" title={`${t.quarantined}: ${session.quarantined}`}><Icon name="alert" /><span class="visually-hidden">{t.quarantined}</span></span>;
  if (hasOpenGate) return <span class="mark warn" title={t.waits}><Icon name="wait" /><span class="visually-hidden">{t.waits}</span></span>;
  if (session.is_awake) return <span class="mark" title={t.running}><Spinner /><span class="visually-hidden">{t.running}</span></span>;
  return null;
}

/** Age in the shortest form of the language; "" is just now. */
function shortAge(timestamp: number): string {
  const seconds = Math.max(0, Date.now() / 1000 - timestamp);
  if (seconds < 60) return "";
  const [amount, unit] =
    seconds < 3600 ? [seconds / 60, "minute" as const] : seconds < 86_400 ? [seconds / 3600, "hour" as const] : [seconds / 86_400, "day" as const];
  const locale = language.value === "zh" ? "zh-CN" : "en";
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "narrow", maximumFractionDigits: 0 }).format(Math.floor(amount));
}

/** A session without a title is named by its first message, as soon as that is loaded. */
function useTitleUpdates(session: string): void {
  const [, redraw] = useState(0);
  useLayoutEffect(() => (session ? getSessionFollower(session).subscribe("tree", () => redraw((count) => count + 1)) : undefined), [session]);
}

/** The current minute, so that "2 minutes ago" stays true. */
function useMinute(): number {
  const now = () => Math.floor(Date.now() / 60_000);
  const [minute, set] = useState(now);
  useEffect(() => {
    const timer = setInterval(() => set(now()), 60_000);
    return () => clearInterval(timer);
  }, []);
  return minute;
}
