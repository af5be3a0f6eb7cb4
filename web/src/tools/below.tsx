/** A sub-turn, drawn small: what it says and the calls it makes. It is followed for as long as somebody looks. */
import { useEffect } from "preact/hooks";
import { sessionOf } from "../app/app";
import { link } from "../app/route";
import { useTopics } from "../app/store";
import { Exact } from "../gates/exact";
import { ErrorLine, Spinner } from "../ui/kit";
import { ToolCard } from "./card";
import { useCardWords } from "./states";

export function Below({ session: id, turn: name }: { session: string; turn: string }) {
  const t = useCardWords();
  const session = sessionOf(id);
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
    <div class="below">
      {messages.flatMap((message) => (message.parts ?? []).map((part, at) =>
        part.type === "text" ? <p class={`words ${message.role}`} dir="auto" key={`${message.id}.${at}`}><Exact text={part.text} /></p>
        : part.type === "tool" ? <ToolCard key={part.call} session={session} turn={name} part={part} /> : null))}
      {turn.live.map((part, at) => part && (part.kind === "call"
        ? <ToolCard key={part.call} session={session} turn={name} live={part} />
        : part.kind === "text" && <p class="words" dir="auto" key={at}><Exact text={part.text} /></p>))}
      <a class="small" href={link({ page: "session", session: id })}>{t.openSession}</a>
    </div>
  );
}
