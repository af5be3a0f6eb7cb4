/** Sub-agent run inside a tool card: its text and its calls. It is followed while it is shown. */
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { getSessionFollower } from "../app/app";
import { hrefFor } from "../app/route";
import { useTopics } from "../app/store";
import { VisibleText } from "../gates/visibleText";
import { ErrorLine, Spinner } from "../ui/components";
import type { CardProps } from "./card";
import { useCardTexts } from "./states";

/** `Card` draws a call: its module loads this one. */
export function Subagent({ session: id, turn: name, Card }: { session: string; turn: string; Card: ComponentType<CardProps> }) {
  const t = useCardTexts();
  const session = getSessionFollower(id);
  useEffect(() => {
    session.start();
    return () => session.pause();
  }, [session]);
  const turn = session.state.turns.get(name);
  useTopics(session, "tree", "connection", `turn:${name}`, `live:${name}`, `message:${turn?.answer ?? ""}`);
  if (session.connection === "gone") return <ErrorLine>{t.gone}</ErrorLine>;
  if (!turn) return <Spinner label={t.loading} />;
  const messages = [...session.state.messages.values()].filter((message) => message.turn === name || message.id === turn.answer || message.id === turn.input);
  return (
    <div class="subagent">
      {messages.flatMap((message) => (message.parts ?? []).map((part, index) =>
        part.type === "text" ? <p class={`message-text ${message.role}`} dir="auto" key={`${message.id}.${index}`}><VisibleText text={part.text} /></p>
        : part.type === "tool" ? <Card key={part.call} session={session} turn={name} part={part} /> : null))}
      {turn.live.map((part, index) => part && (part.kind === "call"
        ? <Card key={part.call} session={session} turn={name} live={part} />
        : part.kind === "text" && <p class="message-text" dir="auto" key={index}><VisibleText text={part.text} /></p>))}
      <a class="small" href={hrefFor({ page: "session", session: id })}>{t.openSession}</a>
    </div>
  );
}
