/** Tree page: all branches of a conversation at a glance, as a tree that is used with the arrow keys. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { client, getSessionFollower, mayWrite, attempt } from "../app/app";
import { hrefFor, navigate } from "../app/route";
import { useTopics } from "../app/store";
import { sessionTitle } from "../app/titles";
import { showControls } from "../conversation/textEscapes";
import { useFetch } from "../app/useFetch";
import { Badge, Button, ErrorLine, Icon, Spinner } from "../ui/components";
import { buildOutline, summarize, type OutlineRow } from "./outline";
import "./treePage.css";
import { useTexts } from "../locales/treePage.gen";

export function TreePage({ session: id }: { session: string }) {
  const t = useTexts();
  const session = getSessionFollower(id);
  useTopics(session, "tree", "connection");
  useEffect(() => {
    session.start();
    return () => session.pause();
  }, [session]);
  // The follower has the last turns only; the tree is asked for again when it changes.
  const { value, problem, reload } = useFetch(() => client.tree(id), id, session.state.messages.size, session.state.deleted.size, session.state.leaf);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => (value ? buildOutline(value.messages, value.leaf, opened) : []), [value, opened]);
  const ends = rows.filter((row) => row.isLast).length;
  const select = async (message: string) => {
    if (await attempt(client.select(id, { message }).then(() => true))) reload();
  };
  return (
    <div class="page tree-page">
      <div class="inner">
        <div class="row wrap">
          <div class="grow">
            <h1>{t.title}</h1>
            <p class="small muted ellipsis" dir="auto">{sessionTitle(id, session.state.title)}</p>
          </div>
          <a class="button little" href={hrefFor({ page: "session", session: id })}>{t.back}</a>
        </div>
        {problem && <ErrorLine>{problem}</ErrorLine>}
        {!value && !problem && <Spinner label={t.loading} />}
        {value && !rows.length && <p class="muted">{t.empty}</p>}
        {rows.length > 0 && <p class="small muted">{t.count(ends)} {t.keys}</p>}
        {rows.length > 0 && <Tree session={id} rows={rows} onUnfold={(row) => setOpened(new Set([...opened, row]))} onSelect={mayWrite(id) ? select : undefined} leaf={value?.leaf ?? null} />}
      </div>
    </div>
  );
}

interface TreeProps {
  session: string;
  rows: readonly OutlineRow[];
  leaf: string | null;
  onUnfold: (row: string) => void;
  onSelect?: (message: string) => Promise<void>;
}

/** One row is in the tab order; the arrow keys move it (the tree pattern of ARIA). */
function Tree({ session, rows, leaf, onUnfold, onSelect }: TreeProps) {
  const t = useTexts();
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<string | null>(null);
  const start = rows.find((row) => row.id === focused) ? focused : (rows.findLast((row) => row.isCurrent) ?? rows[0]!).id;
  const focus = (row: OutlineRow | undefined) => {
    if (!row) return;
    setFocused(row.id);
    root.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(row.id)}"]`)?.focus();
  };
  const open = (row: OutlineRow) => (row.message ? navigate({ page: "session", session, message: row.id }) : onUnfold(row.id));
  const onKeyDown = (event: KeyboardEvent) => {
    const index = rows.findIndex((row) => row.id === start);
    const row = rows[index]!;
    const to: Record<string, () => void> = {
      ArrowDown: () => focus(rows[index + 1]),
      ArrowUp: () => focus(rows[index - 1]),
      ArrowRight: () => (row.message ? focus(rows.find((other) => other.parent === row.id) ?? rows[index + 1]) : onUnfold(row.id)),
      ArrowLeft: () => focus(rows.find((other) => other.id === row.parent)),
      Home: () => focus(rows[0]),
      End: () => focus(rows.at(-1)),
      Enter: () => open(row),
      " ": () => open(row),
    };
    const move = event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest("button") ? undefined : to[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  return (
    <div class="outline" role="tree" aria-label={t.title} ref={root} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <div key={row.id} class={`item ${row.isCurrent ? "current" : ""} ${row.message?.role ?? "folded"}`} role="treeitem" data-row={row.id} tabIndex={row.id === start ? 0 : -1}
          aria-level={row.level} aria-selected={row.isCurrent} aria-current={row.id === leaf ? "true" : undefined} onFocus={() => setFocused(row.id)} onClick={() => open(row)}>
          {Array.from({ length: Math.min(row.level - 1, 8) }, (_, depth) => <span key={depth} class="rail" aria-hidden="true" />)}
          <span class="dot" aria-hidden="true" />
          <span class="text ellipsis grow" dir="auto">
            {row.message ? <><span class="visually-hidden">{t.role(row.message.role)}: </span>{showControls(summarize(row.message)) || t.nothing}</> : t.folded(row.folded)}
          </span>
          {row.branches > 0 && <span class="small muted branches"><Icon name="branch" />{t.branches(row.branches)}</span>}
          {row.id === leaf && <Badge tone="accent">{t.current}</Badge>}
        </div>
      ))}
      {onSelect && focused && focused !== leaf && rows.some((row) => row.id === focused && row.message) && (
        <div class="tools"><Button icon="branch" little onClick={() => void onSelect(focused)}>{t.use}</Button></div>
      )}
    </div>
  );
}
