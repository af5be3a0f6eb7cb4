/** Command palette: search over sessions, commands and messages. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { hrefFor, route } from "../app/route";
import { useStore } from "../app/store";
import { sessionTitle } from "../app/titles";
import { format } from "../app/texts";
import { Icon } from "../ui/components";
import type { Command } from "./command";
import { usePaletteCommands } from "./paletteCommands";
import { searchableText } from "./search";
import { Snippet, useSearch } from "./searchResults";
import { topSession } from "./sessionList";
import { bestMatches } from "./fuzzyMatch";
import { sessions } from "./sessions";
import "./commandPalette.css";
import { useTexts } from "../locales/commandPalette.gen";

interface PaletteEntry extends Command {
  group: "commands" | "sessions" | "messages";
  note?: ComponentChildren;
}

const LIMITS = { commands: 8, sessions: 8, messages: 6 };

export function CommandPalette({ onClose }: { onClose: () => void }) {
  const t = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [activeIndex, setActiveIndex] = useState(0);
  const entries = usePaletteEntries(typed);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => setActiveIndex(0), [typed]);
  const active = Math.min(activeIndex, entries.length - 1);
  useEffect(() => document.getElementById(`palette-${active}`)?.scrollIntoView({ block: "nearest" }), [active]);
  const run = (entry: PaletteEntry | undefined) => {
    if (!entry) return;
    dialog.current?.close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const count = entries.length;
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: Math.min(active + 8, count - 1), PageUp: Math.max(active - 8, 0) }[event.key];
    if (to !== undefined && count) setActiveIndex((to + count) % count);
    else if (event.key === "Enter") run(entries[active]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label={t.label} onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <div class="typed">
        <Icon name="search" />
        <input autoFocus value={typed} placeholder={t.typed} aria-label={t.typed} role="combobox" aria-expanded="true" aria-controls="palette-list"
          aria-autocomplete="list" aria-activedescendant={entries.length ? `palette-${active}` : undefined} autocomplete="off" spellcheck={false} maxLength={1000}
          onInput={(event) => setTyped(event.currentTarget.value)} onKeyDown={onKeyDown} />
      </div>
      <div id="palette-list" class="list" role="listbox" tabIndex={-1} aria-label={t.label}>
        {[...new Set(entries.map((entry) => entry.group))].map((group) => (
          <div key={group} role="group" aria-label={t[group]}>
            <div class="group" aria-hidden="true">{t[group]}</div>
            {entries.map((entry, number) => entry.group === group && (
              <Option key={entry.id} entry={entry} number={number} isActive={number === active} onPick={() => run(entry)} onPoint={() => setActiveIndex(number)} />
            ))}
          </div>
        ))}
      </div>
      {!entries.length && <p class="none small muted">{t.none}</p>}
      <p class="visually-hidden" role="status">{typed && t.count(entries.length)}</p>
    </dialog>
  );
}

function Option({ entry, number, isActive, onPick, onPoint }: {
  entry: PaletteEntry; number: number; isActive: boolean; onPick: () => void; onPoint: () => void;
}) {
  return (
    <div id={`palette-${number}`} class="option" role="option" aria-selected={isActive} onClick={onPick} onPointerMove={() => isActive || onPoint()}>
      <Icon name={entry.icon} />
      <span class="grow">
        <span class="text ellipsis" dir="auto">{entry.text}</span>
        {entry.group === "messages" && entry.note}
      </span>
      {entry.group === "sessions" && <span class="small muted">{entry.note}</span>}
    </div>
  );
}

/** Matching entries: commands and titles at once, messages when the server has answered. */
function usePaletteEntries(typed: string): PaletteEntry[] {
  const t = useTexts();
  const commands = usePaletteCommands();
  const all = useStore(sessions.visible);
  const currentRoute = useStore(route);
  const result = useSearch(typed.trim(), LIMITS.messages);
  useEffect(() => void (all.length || sessions.loadMore()), []);
  return useMemo(() => {
    const currentSession = "session" in currentRoute ? currentRoute.session : "";
    const matchingSessions = bestMatches(all.filter((session) => session.id !== currentSession), typed, (session) => sessionTitle(session.id, session.title) || t.untitled, LIMITS.sessions);
    const matchingCommands = bestMatches(commands, typed, (command) => command.text, typed ? LIMITS.commands : commands.length);
    const results = typed.trim() && result ? result.results.slice(0, LIMITS.messages) : [];
    const lists: PaletteEntry[][] = [
      matchingSessions.map((session) => ({
        id: `s ${session.id}`, group: "sessions", icon: "chat", text: sessionTitle(session.id, session.title) || t.untitled, note: format.ago(session.updated),
        run: () => void (location.hash = hrefFor({ page: "session", session: session.id })),
      })),
      matchingCommands.map((command) => ({ ...command, id: `d ${command.id}`, group: "commands" })),
    ];
    if (typed) lists.reverse(); // a query matches a command more often than a title
    const messages: PaletteEntry[] = results.map(({ session, message, title }) => ({
      id: `m ${session} ${message.id}`, group: "messages", icon: "search", text: sessionTitle(topSession(session), title || sessions.get(topSession(session))?.title) || t.untitled,
      note: <Snippet text={searchableText(message)} query={result!.query} />,
      run: () => void (location.hash = hrefFor({ page: "session", session, message: message.id })),
    }));
    return [...lists.flat(), ...messages];
  }, [typed, commands, all, currentRoute, result, t]);
}
