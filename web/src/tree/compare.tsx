/** Compare page: two branches side by side. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { path, type Message, type SessionState, type Usage } from "@everturn/client";
import { attempt, client, mayWrite, getSessionFollower } from "../app/app";
import { navigate, hrefFor } from "../app/route";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { Button, ErrorLine, Disclosure, Spinner } from "../ui/components";
import { alignMessages, compareBranches } from "./branches";
import { MessagePair, MessageSummary } from "./messagePair";
import { usageOf } from "./totals";
import "./compare.css";
import { useTexts } from "../locales/compare.gen";

type Side = "left" | "right";

export function Compare({ session: id, left, right }: { session: string; left: string; right: string }) {
  const t = useTexts();
  const session = getSessionFollower(id);
  useTopics(session, "tree", "connection");
  useEffect(() => {
    session.start();
    return () => session.pause();
  }, [session]);
  const [isDiff, setDiff] = useState(true);
  const [side, setSide] = useState<Side>("left"); // shown on a narrow screen
  const { state } = session;
  const exists = [left, right].every((leaf) => state.messages.has(leaf) && !state.deleted.has(leaf));
  const comparison = useMemo(() => (exists ? compareBranches(state, left, right) : null), [exists, state, state.seq, left, right]);
  const turns = comparison && lastTurns(comparison.left, comparison.right);
  return (
    <div class="page compare" data-side={side}>
      <div class="inner">
        <div class="row wrap">
          <h1 class="grow">{t.title}</h1>
          {turns && <a class="button little" href={hrefFor({ page: "trace", session: id, turn: turns[0], other: turns[1] })}>{t.traces}</a>}
          <a class="button little" href={hrefFor({ page: "session", session: id })}>{t.back}</a>
        </div>
        {session.problem && <ErrorLine>{session.problem.message}</ErrorLine>}
        {!comparison && (session.connection === "loading" ? <Spinner label={t.loading} /> : <p>{t.gone}</p>)}
        {comparison && (
          <>
            <div class="row wrap tools">
              <label class="row"><input type="checkbox" checked={isDiff} onChange={(event) => setDiff(event.currentTarget.checked)} /> {t.differences}</label>
              <Button little kind="quiet" icon="compare" onClick={() => navigate({ page: "compare", session: id, left: right, right: left })}>{t.swap}</Button>
              <div class="switch row" role="group" aria-label={t.which}>
                {(["left", "right"] as const).map((choice) => (
                  <Button key={choice} little kind={choice === side ? "primary" : undefined} aria-pressed={choice === side} onClick={() => setSide(choice)}>{t[choice]}</Button>
                ))}
              </div>
            </div>
            {comparison.common.length > 0 && (
              <Disclosure class="card common" summary={<span>{t.common(comparison.common.length)}</span>}>
                {comparison.common.map((message) => <MessageSummary key={message.id} message={message} />)}
              </Disclosure>
            )}
            {!comparison.left.length && !comparison.right.length && <p class="muted">{t.same}</p>}
            <div class="sides heads">
              <BranchHead state={state} id={id} side="left" leaf={left} own={comparison.left} />
              <BranchHead state={state} id={id} side="right" leaf={right} own={comparison.right} />
            </div>
            {alignMessages(comparison.left, comparison.right).map(([leftMessage, rightMessage]) => (
              <MessagePair key={`${leftMessage?.id} ${rightMessage?.id}`} left={leftMessage} right={rightMessage} isDiff={isDiff} />
            ))}
          </>
        )}
      </div>
    </div>
  );
}

/** The last turns of two branches, if both have one of their own. */
function lastTurns(left: readonly Message[], right: readonly Message[]): [string, string] | null {
  const [first, second] = [left.findLast((message) => message.turn)?.turn, right.findLast((message) => message.turn)?.turn];
  return first && second && first !== second ? [first, second] : null;
}

/** Header of a branch: its totals, and the button to select it. */
function BranchHead({ state, id, side, leaf, own }: { state: SessionState; id: string; side: Side; leaf: string; own: readonly Message[] }) {
  const t = useTexts();
  const isSelected = state.leaf !== null && path(state).some((message) => message.id === leaf);
  const select = async () => {
    const isDone = isSelected || (await attempt(client.select(id, { message: leaf }).then(() => true)));
    if (isDone) navigate({ page: "session", session: id });
  };
  return (
    <div class={`side ${side} card head`}>
      <strong>{t[side]}{isSelected && <span class="badge accent">{t.selected}</span>}</strong>
      <Totals messages={own} />
      {(mayWrite(id) || isSelected) && <Button little icon="branch" onClick={() => void select()}>{t.go}</Button>}
    </div>
  );
}

function Totals({ messages }: { messages: readonly Message[] }) {
  const t = useTexts();
  const used: Usage = usageOf(messages);
  return (
    <span class="small muted grow">
      {t.messages(messages.length)}
      {(used.input || used.output) ? ` · ${t.tokens(format.number(used.input ?? 0), format.number(used.output ?? 0))}` : ""}
      {used.cost ? ` · ${format.cost(used.cost)}` : ""}
    </span>
  );
}
