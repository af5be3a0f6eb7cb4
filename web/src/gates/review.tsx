/** Result review: a person reads a result before the model does, and may redact it. */
import type { Gate } from "@everturn/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, Field, Disclosure, Icon } from "../ui/components";
import { Attachments } from "../tools/attachments";
import type { GateAnswer } from "./useAnswer";
import { TextBlock, VisibleText, TextWarnings } from "./visibleText";
import { escapeInvisible } from "./invisibleChars";
import { REDACTED, redactedText, occurrences, redact, redactAll, restore, segments, undo, unredacted, type Cut } from "./redaction";
import { selectByKey, selectedRange } from "./selection";
import { useTexts } from "../locales/review.gen";

/** `answerRef` holds the answer that a key would send, without the redacted text. */
export function Review({ gate, session, isReady, answerRef, onSend, onWithhold }: {
  gate: Gate; session: string; isReady: boolean; answerRef: { current: () => GateAnswer }; onSend: (answer: GateAnswer) => void; onWithhold: () => void;
}) {
  const t = useTexts();
  const output = gate.output!;
  const [redaction, setRedaction] = useState(() => unredacted(output.text));
  const [selected, setSelected] = useState<Cut | null>(null);
  const [find, setFind] = useState("");
  const text = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const onSelection = () => text.current && setSelected(selectedRange(text.current));
    document.addEventListener("selectionchange", onSelection);
    return () => document.removeEventListener("selectionchange", onSelection);
  }, []);
  const redactSelection = (how: "this" | "all") => {
    const now = (text.current && selectedRange(text.current)) ?? selected;
    if (!now) return;
    setRedaction(how === "all" ? redactAll(redaction, redaction.text.slice(now.from, now.to)) : redact(redaction, now.from, now.to));
    document.getSelection()?.removeAllRanges();
    setSelected(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if ((event.key === "r" || event.key === "Delete" || event.key === "Backspace") && selected && !event.ctrlKey && !event.metaKey && !event.altKey) redactSelection("this");
    else if (event.key === "z" && (event.ctrlKey || event.metaKey)) setRedaction(undo(redaction));
    else if (!selectByKey(event.currentTarget as HTMLElement, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const found = occurrences(redaction, find).length;
  const hasCuts = redaction.cuts.length > 0;
  answerRef.current = () => (hasCuts ? { allow: "once", text: redactedText(redaction) } : { allow: "once" });
  return (
    <div class="review">
      <p class="label">{t.title} <span class="muted small">({t.characters(redactedText(redaction).length)})</span></p>
      {output.text ? (
        <pre class="visible-text text" dir="auto" tabIndex={0} role="group" aria-label={t.title} ref={text} onKeyDown={onKeyDown}>
          {segments(redaction).map((segment) => segment.isCut
            ? <span key={segment.at} class="cut" data-at={segment.at} data-size={segment.text.length}>{REDACTED}</span>
            : <VisibleText key={segment.at} text={segment.text} at={segment.at} />)}
        </pre>
      ) : <p class="muted">{t.empty}</p>}
      <TextWarnings text={output.text} />
      {output.blob && <p class="small warn"><Icon name="alert" /> {t.excerpt}</p>}
      <Attachments session={session} files={output.attachments ?? []} />
      <p class="small muted">{t.how}</p>
      <div class="row wrap" onPointerDown={(event) => event.preventDefault() /* keep the selection */}>
        <Button icon="edit" disabled={!selected} onClick={() => redactSelection("this")}>{t.redact}</Button>
        <Button disabled={!selected} onClick={() => redactSelection("all")}>{t.all}</Button>
        <Button icon="revert" kind="quiet" disabled={!redaction.before} onClick={() => setRedaction(undo(redaction))}>{t.undo}</Button>
      </div>
      <Disclosure summary={<span class="small">{t.find}</span>}>
        <div class="row wrap end">
          <div class="grow"><Field label={t.find}><input class="input mono" value={find} spellcheck={false} onInput={(event) => setFind(event.currentTarget.value)} /></Field></div>
          <Button disabled={!found} onClick={() => { setRedaction(redactAll(redaction, find)); setFind(""); }}>{find ? t.findAll(found) : t.all}</Button>
        </div>
      </Disclosure>
      {hasCuts && (
        <Disclosure summary={<span class="small">{t.taken(redaction.cuts.length)}</span>}>
          <ul class="cuts">
            {redaction.cuts.map((cut, index) => (
              <li class="row" key={cut.from}>
                <code class="grow ellipsis">{escapeInvisible(redaction.text.slice(cut.from, cut.to).slice(0, 80))}</code>
                <Button little kind="quiet" onClick={() => setRedaction(restore(redaction, index))}>{t.back}</Button>
              </li>
            ))}
          </ul>
        </Disclosure>
      )}
      {hasCuts && <Disclosure summary={<span class="small">{t.preview}</span>}><TextBlock text={redactedText(redaction)} label={t.preview} /><p class="small muted">{t.drops}</p></Disclosure>}
      <div class="row wrap actions" aria-disabled={!isReady}>
        {hasCuts
          ? <Button kind="primary" icon="check" onClick={() => onSend(answerRef.current())}>{t.redacted} <kbd>Y</kbd></Button>
          : <Button kind="primary" icon="check" onClick={() => onSend(answerRef.current())}>{t.asIs} <kbd>Y</kbd></Button>}
        <Button kind="danger" icon="close" onClick={onWithhold}>{t.withhold} <kbd>N</kbd></Button>
      </div>
    </div>
  );
}
