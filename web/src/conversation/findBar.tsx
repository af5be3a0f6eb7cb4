/** Find bar: searches the shown branch of a conversation, and moves from one message to the next. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionFollower } from "@everturn/client";
import { client } from "../app/app";
import { navigate } from "../app/route";
import { useTopics } from "../app/store";
import { useFetch } from "../app/useFetch";
import { useDebounced } from "../pages/useDebounced";
import { Button } from "../ui/components";
import { findMessages, findRanges } from "./findText";
import "./findBar.css";
import { useTexts } from "../locales/findBar.gen";

export function FindBar({ session, onClose }: { session: SessionFollower; onClose: () => void }) {
  const t = useTexts();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [shown, setShown] = useState("");
  const query = useDebounced(text);
  useTopics(session, "tree");
  const { value, problem } = useFetch(() => client.allMessages(session.id), session.id, session.state.leaf, session.state.deleted.size);
  const found = value ? findMessages(value.messages, query) : [];
  const at = found.indexOf(shown);
  const show = (index: number) => {
    const message = found[(index + found.length) % found.length];
    if (!message) return;
    setShown(message);
    navigate({ page: "session", session: session.id, message }, true);
  };
  useEffect(() => input.current?.focus(), []);
  useEffect(() => (found.length ? show(found.length - 1) : undefined), [query, value]); // the newest first
  useHighlight(query, shown);
  const close = () => {
    navigate({ page: "session", session: session.id }, true);
    onClose();
  };
  return (
    <form class="find-bar" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        ref={input} type="search" class="input grow" aria-label={t.label} placeholder={t.label} value={text} maxLength={200}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") show(event.shiftKey ? at - 1 : at + 1);
          else if (event.key === "Escape") close();
          else return;
          event.preventDefault();
        }}
      />
      <span class="small muted count" role="status">{!query.trim() ? "" : problem ?? (!value ? t.loading : found.length ? t.count(at + 1, found.length) : t.none)}</span>
      <Button little kind="quiet" icon="chevron" class="previous" aria-label={t.previous} disabled={!found.length} onClick={() => show(at - 1)} />
      <Button little kind="quiet" icon="chevron" class="next" aria-label={t.next} disabled={!found.length} onClick={() => show(at + 1)} />
      <Button little kind="quiet" icon="close" aria-label={t.close} onClick={close} />
    </form>
  );
}

/** Marks the text in the messages that are rendered, where the browser has CSS highlights. */
function useHighlight(query: string, shown: string): void {
  useEffect(() => {
    const transcript = document.querySelector(".transcript");
    if (!("highlights" in CSS) || !transcript) return;
    const mark = () => CSS.highlights.set("find", new Highlight(...findRanges(transcript, query)));
    mark();
    const observer = new MutationObserver(mark); // earlier messages are rendered later
    observer.observe(transcript, { childList: true, subtree: true });
    return () => {
      observer.disconnect();
      CSS.highlights.delete("find");
    };
  }, [query, shown]);
}
