/** The list of sessions: live, page by page as somebody scrolls. */
import { Component } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SessionView } from "@everturn/client";
import { inbox, may, sessionOf } from "../app/app";
import { lazy } from "../app/lazy";
import { link, route } from "../app/route";
import { useStore, useTopics } from "../app/store";
import { titleOf } from "../app/titles";
import { language, say, words } from "../app/words";
import { Button, Icon, Menu, Spinner, type MenuItem } from "../ui/kit";
import { topOf } from "./list";
import { exportSession, sessions } from "./sessions";

const Erase = lazy(async () => (await import("./erase")).Erase);

const useWords = words(
  {
    untitled: "Untitled conversation", none: "No conversations yet.", failed: "The list could not be read.", again: "Try again",
    running: "running", waits: "waits for an answer", stuck: "stuck", more: "More about this conversation", list: "Conversations",
    exported: "Export", erase: "Erase…", loading: "Loading", now: "now",
  },
  {
    untitled: "未命名对话", none: "还没有对话。", failed: "无法读取列表。", again: "重试",
    running: "运行中", waits: "等待答复", stuck: "卡住了", more: "更多操作", list: "对话",
    exported: "导出", erase: "彻底删除…", loading: "加载中", now: "刚刚",
  },
);

export function SessionRows() {
  const t = useWords();
  const all = useStore(sessions.shown);
  const state = useStore(sessions.state);
  const at = useStore(route);
  const spoken = useStore(language);
  useTopics(inbox, "gates");
  const minute = useMinute();
  const [erased, setErased] = useState<SessionView | null>(null);
  const asked = new Set(inbox.gates.filter(({ gate }) => gate.kind !== "client").map(({ session }) => topOf(session)));
  const here = "session" in at ? topOf(at.session) : "";
  useNaming(here);
  return (
    <>
      <ul class="sessions" aria-label={t.list}>
        {all.map((session) => (
          <Row key={session.id} session={session} isHere={session.id === here} isAsked={asked.has(session.id)} drawn={`${spoken} ${minute} ${titleOf(session.id, session.title)}`} onErase={setErased} />
        ))}
      </ul>
      {state === "whole" && !all.length && <p class="empty small muted">{t.none}</p>}
      {state === "failed" ? (
        <p class="empty small"><span class="muted">{t.failed}</span> <Button little onClick={() => void sessions.more()}>{t.again}</Button></p>
      ) : (
        state !== "whole" && <More label={t.loading} />
      )}
      {erased && <Erase session={erased} onClose={() => setErased(null)} />}
    </>
  );
}

/** The end of what was read so far: when it comes near the screen, the next page is read. */
function More({ label }: { label: string }) {
  const ref = useRef<HTMLDivElement>(null);
  const state = useStore(sessions.state);
  useEffect(() => {
    if (state !== "idle" || !ref.current) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && void sessions.more(), { rootMargin: "400px" });
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, [state]);
  return <div class="more" ref={ref}>{state === "loading" && <Spinner label={label} />}</div>;
}

interface RowProps {
  session: SessionView;
  isHere: boolean;
  isAsked: boolean;
  /** In which language and minute, and under which name: what else changes what a row says. */
  drawn: string;
  onErase: (session: SessionView) => void;
}

/** One of perhaps a thousand: it is drawn again only when something about it has changed. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { session, isHere, isAsked, drawn } = this.props;
    return session !== next.session || isHere !== next.isHere || isAsked !== next.isAsked || drawn !== next.drawn;
  }

  override render() {
    return <RowView {...this.props} />;
  }
}

function RowView({ session, isHere, isAsked, onErase }: RowProps) {
  const t = useWords();
  const title = titleOf(session.id, session.title) || t.untitled;
  const items: MenuItem[] = [];
  if (may("member")) items.push({ label: t.exported, icon: "download", onSelect: () => void exportSession(session.id, title) });
  if (may("owner")) items.push({ label: t.erase, icon: "trash", onSelect: () => onErase(session) });
  return (
    <li class="session" data-here={isHere || undefined}>
      <a href={link({ page: "session", session: session.id })} aria-current={isHere ? "page" : undefined} title={title}>
        <span class="title ellipsis" dir="auto">{title}</span>
        <Mark session={session} isAsked={isAsked} />
        <time class="when" dateTime={new Date(session.touched * 1000).toISOString()} title={say.moment(session.touched)}>{briefly(session.touched) || t.now}</time>
      </a>
      {items.length > 0 && <Menu end button={{ icon: "more", label: t.more }} items={items} />}
    </li>
  );
}

function Mark({ session, isAsked }: { session: SessionView; isAsked: boolean }) {
  const t = useWords();
  if (session.stuck) return <span class="mark bad" title={`${t.stuck}: ${session.stuck}`}><Icon name="alert" /><span class="visually-hidden">{t.stuck}</span></span>;
  if (isAsked) return <span class="mark warn" title={t.waits}><Icon name="wait" /><span class="visually-hidden">{t.waits}</span></span>;
  if (session.is_awake) return <span class="mark" title={t.running}><Spinner /><span class="visually-hidden">{t.running}</span></span>;
  return null;
}

/** How long ago, in as few letters as the language allows; "" is just now. */
function briefly(at: number): string {
  const seconds = Math.max(0, Date.now() / 1000 - at);
  if (seconds < 60) return "";
  const [amount, unit] =
    seconds < 3600 ? [seconds / 60, "minute" as const] : seconds < 86_400 ? [seconds / 3600, "hour" as const] : [seconds / 86_400, "day" as const];
  const locale = language.value === "zh" ? "zh-CN" : "en";
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "narrow", maximumFractionDigits: 0 }).format(Math.floor(amount));
}

/** A conversation that has no title yet is named by its first message, as soon as that is here. */
function useNaming(session: string): void {
  const [, redraw] = useState(0);
  useLayoutEffect(() => (session ? sessionOf(session).subscribe("tree", () => redraw((count) => count + 1)) : undefined), [session]);
}

/** The minute it is, so that "2 minutes ago" stays true. */
function useMinute(): number {
  const now = () => Math.floor(Date.now() / 60_000);
  const [minute, set] = useState(now);
  useEffect(() => {
    const timer = setInterval(() => set(now()), 60_000);
    return () => clearInterval(timer);
  }, []);
  return minute;
}
