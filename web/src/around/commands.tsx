/** The palette itself: sessions, commands, and messages that have the words. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { link, route } from "../app/route";
import { useStore } from "../app/store";
import { titleOf } from "../app/titles";
import { say, words } from "../app/words";
import { Icon, type IconName } from "../ui/kit";
import { useDeeds } from "./deeds";
import { searchable } from "./finding";
import { Snippet, useSearch } from "./found";
import { topOf } from "./list";
import { best } from "./matching";
import { sessions } from "./sessions";
import "./palette.css";

const useWords = words(
  {
    label: "Commands", typed: "Search conversations and commands", none: "Nothing fits.", deeds: "Commands", sessions: "Conversations",
    messages: "Messages", untitled: "Untitled conversation", count: (count: number) => `${count} results`,
  },
  {
    label: "命令", typed: "搜索对话和命令", none: "没有匹配项。", deeds: "命令", sessions: "对话",
    messages: "消息", untitled: "未命名对话", count: (count: number) => `${count} 个结果`,
  },
);

export interface Deed {
  id: string;
  text: string;
  icon: IconName;
  run: () => void;
}

interface Entry extends Deed {
  group: "deeds" | "sessions" | "messages";
  note?: ComponentChildren;
}

const MOST = { deeds: 8, sessions: 8, messages: 6 };

export function Commands({ onClose }: { onClose: () => void }) {
  const t = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(typed);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => setAt(0), [typed]);
  const here = Math.min(at, entries.length - 1);
  useEffect(() => document.getElementById(`palette-${here}`)?.scrollIntoView({ block: "nearest" }), [here]);
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    dialog.current?.close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const count = entries.length;
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, PageDown: Math.min(here + 8, count - 1), PageUp: Math.max(here - 8, 0) }[event.key];
    if (to !== undefined && count) setAt((to + count) % count);
    else if (event.key === "Enter") run(entries[here]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label={t.label} onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <div class="typed">
        <Icon name="search" />
        <input autoFocus value={typed} placeholder={t.typed} aria-label={t.typed} role="combobox" aria-expanded="true" aria-controls="palette-list"
          aria-autocomplete="list" aria-activedescendant={entries.length ? `palette-${here}` : undefined} autocomplete="off" spellcheck={false} maxLength={1000}
          onInput={(event) => setTyped(event.currentTarget.value)} onKeyDown={onKeyDown} />
      </div>
      <div id="palette-list" class="list" role="listbox" aria-label={t.label}>
        {[...new Set(entries.map((entry) => entry.group))].map((group) => (
          <div key={group} role="group" aria-label={t[group]}>
            <div class="group" aria-hidden="true">{t[group]}</div>
            {entries.map((entry, number) => entry.group === group && (
              <Option key={entry.id} entry={entry} number={number} isHere={number === here} onPick={() => run(entry)} onPoint={() => setAt(number)} />
            ))}
          </div>
        ))}
      </div>
      {!entries.length && <p class="none small muted">{t.none}</p>}
      <p class="visually-hidden" role="status">{typed && t.count(entries.length)}</p>
    </dialog>
  );
}

function Option({ entry, number, isHere, onPick, onPoint }: {
  entry: Entry; number: number; isHere: boolean; onPick: () => void; onPoint: () => void;
}) {
  return (
    <div id={`palette-${number}`} class="option" role="option" aria-selected={isHere} onClick={onPick} onPointerMove={() => isHere || onPoint()}>
      <Icon name={entry.icon} />
      <span class="grow">
        <span class="text ellipsis" dir="auto">{entry.text}</span>
        {entry.group === "messages" && entry.note}
      </span>
      {entry.group === "sessions" && <span class="small muted">{entry.note}</span>}
    </div>
  );
}

/** What fits: commands and titles at once, messages when the server has answered. */
function useEntries(typed: string): Entry[] {
  const t = useWords();
  const deeds = useDeeds();
  const all = useStore(sessions.shown);
  const at = useStore(route);
  const result = useSearch(typed.trim(), MOST.messages);
  useEffect(() => void (all.length || sessions.more()), []);
  return useMemo(() => {
    const here = "session" in at ? at.session : "";
    const titled = best(all.filter((one) => one.id !== here), typed, (one) => titleOf(one.id, one.title) || t.untitled, MOST.sessions);
    const fitting = best(deeds, typed, (one) => one.text, typed ? MOST.deeds : deeds.length);
    const found = typed.trim() && result ? result.found.slice(0, MOST.messages) : [];
    const lists: Entry[][] = [
      titled.map((one) => ({
        id: `s ${one.id}`, group: "sessions", icon: "chat", text: titleOf(one.id, one.title) || t.untitled, note: say.ago(one.touched),
        run: () => void (location.hash = link({ page: "session", session: one.id })),
      })),
      fitting.map((one) => ({ ...one, id: `d ${one.id}`, group: "deeds" })),
    ];
    if (typed) lists.reverse(); // what was typed is a command more often than a title
    const messages: Entry[] = found.map(({ session, message, title }) => ({
      id: `m ${session} ${message.id}`, group: "messages", icon: "search", text: titleOf(topOf(session), title || sessions.get(topOf(session))?.title) || t.untitled,
      note: <Snippet text={searchable(message)} query={result!.query} />,
      run: () => void (location.hash = link({ page: "session", session, message: message.id })),
    }));
    return [...lists.flat(), ...messages];
  }, [typed, deeds, all, at, result, t]);
}
