/** Viewers: who else looks at a conversation, as initials, or at an approval, as a line. */
import type { ViewerView } from "@everturn/client";
import { viewers } from "./presence";
import { useStore } from "./store";
import { language } from "./texts";
import { initialsOf, peopleOf } from "./viewerNames";
import "./viewers.css";
import { useTexts } from "../locales/presence.gen";

const MAX_INITIALS = 3;

export function ConversationViewers({ session }: { session: string }) {
  const t = useTexts();
  const others = peopleOf(useStore(viewers).filter((viewer) => viewer.session === session));
  if (!others.length) return null;
  const label = t.conversation(others.length, listOf(others, t.administrator));
  return (
    <span class="viewers" role="img" aria-label={label} title={label}>
      {others.slice(0, MAX_INITIALS).map((viewer) => <span key={viewer.user} class={viewer.is_administrator ? "administrator" : ""}>{initialsOf(viewer.name)}</span>)}
      {others.length > MAX_INITIALS && <span>+{others.length - MAX_INITIALS}</span>}
    </span>
  );
}

export function GateViewers({ gate }: { gate: string }) {
  const t = useTexts();
  const others = peopleOf(useStore(viewers).filter((viewer) => viewer.gate === gate));
  return <p class="gate-viewers small muted" role="status">{others.length > 0 && t.gate(others.length, listOf(others, t.administrator))}</p>;
}

function listOf(people: readonly ViewerView[], administrator: (name: string) => string): string {
  return new Intl.ListFormat(language.value).format(people.map((viewer) => (viewer.is_administrator ? administrator(viewer.name) : viewer.name)));
}
