/** Compaction card: what a compaction freed, its summary, and a button that undoes it. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { isOver, type ClearedPart, type Message, type SessionFollower, type SummaryPart } from "@everturn/client";
import { mayWrite } from "../app/app";
import { lazy } from "../app/lazy";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { Badge, Button, Icon } from "../ui/components";
import { Markdown } from "./markdown";
import { showControls } from "./textEscapes";
import "./compactionCard.css";
import { useTexts } from "../locales/compactionCard.gen";

const UndoCompactionDialog = lazy(async () => (await import("./undoCompaction")).UndoCompactionDialog);

interface Props {
  part: SummaryPart | ClearedPart;
  /** The message of the compaction, if it can be undone. */
  message?: Message;
  session?: SessionFollower;
}

export function CompactionCard({ part, message, session }: Props) {
  const t = useTexts();
  const [isShown, setShown] = useState(false);
  const id = useId();
  const head = useRef<HTMLDivElement>(null);
  // A transcript that sticks to its end has moved the card up.
  useEffect(() => { if (isShown) head.current?.scrollIntoView({ block: "nearest" }); }, [isShown]);
  const [before, after] = [part.before ?? 0, part.after ?? 0];
  const isSummary = part.type === "summary";
  return (
    <section class={`compaction ${part.type}`} data-compaction={part.type}>
      <div class="head" ref={head}>
        <Icon name="compact" />
        <p class="grow">
          {isSummary ? (
            <><strong>{t.compacted(format.tokens(before), format.tokens(after))}</strong>{t.then}{(part.text ? t.summarised : t.leftOut)(part.messages ?? 0)}</>
          ) : (
            t.cleared(part.calls.length, format.tokens(Math.max(0, before - after)))
          )}
        </p>
        {isSummary && <Button little kind="quiet" aria-expanded={isShown} aria-controls={id} onClick={() => setShown(!isShown)}>{isShown ? t.hide : t.show}</Button>}
        {session && message && <UndoButton session={session} message={message} label={t.undo} />}
      </div>
      {isSummary && isShown && <div class="details" id={id} role="region" aria-label={t.summary} tabIndex={0}><SummaryDetails part={part} /></div>}
    </section>
  );
}

function UndoButton({ session, message, label }: { session: SessionFollower; message: Message; label: string }) {
  const turn = message.turn ?? "";
  useTopics(session, `turn:${turn}`);
  const [isAsked, setAsked] = useState(false);
  const running = session.state.turns.get(turn);
  if (!mayWrite(session.id)) return null;
  return (
    <>
      <Button little kind="quiet" icon="revert" disabled={running !== undefined && !isOver(running)} onClick={() => setAsked(true)}>{label}</Button>
      {isAsked && <UndoCompactionDialog session={session} message={message} onClose={() => setAsked(false)} />}
    </>
  );
}

/** Everything in a summary is text of a model, of tools or of people: it is drawn as such, and never becomes HTML. */
function SummaryDetails({ part }: { part: SummaryPart }) {
  const t = useTexts();
  const { quotes = [], artifacts = [] } = part;
  return (
    <>
      <p class="small muted">
        {t[part.why ?? "limit"]}{part.by && ` ${t.by(showControls(part.by))}`}
        {part.untrusted && <> <Badge tone="warn">{t.untrusted}</Badge></>}
      </p>
      {part.focus && <p class="small"><span class="muted">{t.focus}</span> <span dir="auto">{showControls(part.focus)}</span></p>}
      {part.text ? <Markdown text={part.text} /> : <p>{t.noText}</p>}
      {quotes.length > 0 && <h4>{t.quotes}</h4>}
      {quotes.map((quote) => <blockquote key={quote.message} dir="auto">{showControls(quote.text)}</blockquote>)}
      {artifacts.length > 0 && <><h4>{t.artifacts}</h4><ul>{artifacts.map((artifact) => <li key={artifact} dir="auto">{showControls(artifact)}</li>)}</ul></>}
    </>
  );
}
