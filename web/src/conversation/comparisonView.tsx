/** Comparison view: the answers of several models to one message, in columns; stacked where there is no room. */
import { isOver, path, type SessionFollower } from "@everturn/client";
import { attempt, client, mayWrite } from "../app/app";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { newestLeaf } from "../tree/branches";
import { messagesOfTurn, tokensOf } from "../tree/comparison";
import { Badge, Button } from "../ui/components";
import { MessageView } from "./message";
import { TurnFooter } from "./turnFooter";
import "./comparisonView.css";
import { useTexts } from "../locales/comparison.gen";

interface Props {
  session: SessionFollower;
  turns: readonly string[];
  marked: string | undefined;
}

export function ComparisonView({ session, turns, marked }: Props) {
  const t = useTexts();
  const { state } = session;
  useTopics(session, "tree");
  const chosen = path(state).at(-1)?.turn;
  const finished = turns.filter((id) => isOver(state.turns.get(id)!)).length;
  const model = state.turns.get(chosen ?? "")?.options.model;
  return (
    <section class="comparison" aria-label={t.title(turns.length)} data-count={turns.length}>
      <div class="columns">
        {turns.map((id, index) => (
          <Column key={id} session={session} id={id} label={t.answer(index + 1, turns.length, modelOf(session, id))} isChosen={id === chosen} marked={marked} />
        ))}
      </div>
      <p class="small muted" role="status">{t.finished(finished, turns.length)}{model && turns.includes(chosen!) ? ` ${t.active(model)}` : ""}</p>
    </section>
  );
}

const modelOf = ({ state }: SessionFollower, id: string) => state.turns.get(id)?.options.model ?? "";

function Column({ session, id, label, isChosen, marked }: { session: SessionFollower; id: string; label: string; isChosen: boolean; marked: string | undefined }) {
  const t = useTexts();
  useTopics(session, `turn:${id}`, `live:${id}`, "tree");
  const { state } = session;
  const turn = state.turns.get(id);
  if (!turn) return null;
  const messages = messagesOfTurn(state, turn);
  const tokens = tokensOf(turn);
  const facts = [
    turn.ended ? format.seconds(turn.ended - turn.started) : "",
    tokens ? t.tokens(format.number(tokens)) : "",
    turn.usage.cost ? format.cost(turn.usage.cost) : "",
  ].filter(Boolean);
  return (
    <section class={`column ${isChosen ? "chosen" : ""}`} aria-label={label} data-turn={id}>
      <header>
        <h2 class="ellipsis" dir="auto" title={turn.options.model}>{turn.options.model}</h2>
        {isChosen && <Badge tone="accent" icon="check">{t.chosen}</Badge>}
        <p class="small muted facts">{facts.map((fact) => <span key={fact}>{fact}</span>)}</p>
        {!isOver(turn) && mayWrite(session.id) && (
          <Button little kind="quiet" icon="stop" aria-label={t.stop(turn.options.model ?? "")} onClick={() => void attempt(client.cancel(session.id, id))} />
        )}
      </header>
      <div class="answer">
        {messages.map((message) => <MessageView key={message.id} session={session} id={message.id} isEdited={false} isMarked={marked === message.id} onEdit={() => {}} />)}
        <TurnFooter session={session} id={id} />
      </div>
      {mayWrite(session.id) && (
        <Button little icon="branch" class="choose" disabled={!turn.answer} aria-pressed={isChosen} aria-label={`${t.choose}: ${turn.options.model}`}
          onClick={() => turn.answer && void attempt(client.select(session.id, { message: newestLeaf(state, turn.answer) }))}>
          {t.choose}
        </Button>
      )}
    </section>
  );
}
