/** Gate batch: answers many gates at once. Each answer is a request of its own, with the hash of its gate. */
import { useEffect, useRef, useState } from "preact/hooks";
import { hasRole, me } from "../app/app";
import { settings, updateSettings } from "../app/settings";
import { useStore } from "../app/store";
import { Button, ErrorLine, Icon, Spinner } from "../ui/components";
import { answerEach, COMPACT_FROM, countByTool, isBatchable, rowWarnings, type BatchItem, type Outcomes } from "./batch";
import { useClickGuard } from "./clickGuard";
import { problemText } from "./expiry";
import { escapeInvisible } from "./invisibleChars";
import { useGateTexts } from "./texts";
import { sendAnswer, wasAnswered, type GateAnswer } from "./useAnswer";
import "./batch.css";
import { useTexts } from "../locales/gateBatch.gen";

interface Asked {
  readonly isAllow: boolean;
  readonly items: readonly BatchItem[]; // those that were shown when the question was asked; later ones are not answered
}

/** `items`: the open gates. Stays for its report after the last one is answered. */
export function GateBatch({ items, label, hasDensity = false }: { items: readonly BatchItem[]; label?: string; hasDensity?: boolean }) {
  const t = useTexts();
  useStore(me);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [progress, setProgress] = useState<{ done: number; all: number } | null>(null);
  const [report, setReport] = useState<{ asked: Asked; outcomes: Outcomes } | null>(null);
  const open = items.filter(({ gate }) => isBatchable(gate) && !wasAnswered(gate));
  const send = async (answered: Asked) => {
    setAsked(null);
    setReport(null);
    setProgress({ done: 0, all: answered.items.length });
    const answer: GateAnswer = answered.isAllow ? { allow: "once" } : { deny: true };
    const outcomes = await answerEach(answered.items, async ({ session, gate }) => (await sendAnswer(session, gate, answer))?.code ?? "", (done) => setProgress({ done, all: answered.items.length }));
    setProgress(null);
    setReport({ asked: answered, outcomes });
  };
  if (!hasRole("approver") || (open.length < 2 && !progress && !report)) return null;
  return (
    <div class="gate-batch" role="group" aria-label={label ?? t.label}>
      {progress && <p class="row" role="status"><Spinner /> {t.progress(progress.done, progress.all)}</p>}
      {report && <Report {...report} onRetry={(failed) => void send(failed)} onClose={() => setReport(null)} />}
      {!progress && !asked && open.length > 1 && (
        <div class="row wrap">
          <span class="grow small"><Icon name="inbox" /> {t.waiting(open.length)}</span>
          {hasDensity && open.length >= COMPACT_FROM && <Density />}
          <Button little kind="primary" icon="check" onClick={() => setAsked({ isAllow: true, items: open })}>{t.allowAll(open.length)}</Button>
          <Button little kind="danger" icon="close" onClick={() => setAsked({ isAllow: false, items: open })}>{t.denyAll(open.length)}</Button>
        </div>
      )}
      {asked && <Confirm asked={asked} onSend={send} onBack={() => setAsked(null)} />}
    </div>
  );
}

/** Whether gates side by side are rows or whole cards. */
export function Density() {
  const t = useTexts();
  const { gates } = useStore(settings);
  return <Button little onClick={() => updateSettings({ gates: gates === "full" ? "rows" : "full" })}>{gates === "full" ? t.rows : t.full}</Button>;
}

function Confirm({ asked, onSend, onBack }: { asked: Asked; onSend: (asked: Asked) => void; onBack: () => void }) {
  const [t, g] = [useTexts(), useGateTexts()];
  const bar = useRef<HTMLDivElement>(null);
  const [isReady, checkReady] = useClickGuard(bar, true);
  const [wasTooEarly, setTooEarly] = useState(false);
  useEffect(() => bar.current?.focus(), []);
  const warnings = asked.items.map(({ gate }) => rowWarnings(gate));
  const risky = warnings.filter(({ risks }) => risks > 0).length;
  const cut = warnings.filter(({ isCut }) => isCut).length;
  const plain = asked.items.filter((_, index) => warnings[index]!.risks === 0);
  const send = (items: readonly BatchItem[]) => {
    const isNow = checkReady();
    setTooEarly(!isNow);
    if (isNow) onSend({ ...asked, items });
  };
  return (
    <div class="confirm" ref={bar} tabIndex={-1} data-steady={isReady} onKeyDown={(event) => event.key === "Escape" && onBack()}>
      <p><strong>{asked.isAllow ? t.allowTitle(asked.items.length) : t.denyTitle(asked.items.length)}</strong></p>
      <p class="small">{countByTool(asked.items.map(({ gate }) => gate)).map(([tool, count]) => `${escapeInvisible(tool)} × ${count}`).join(" · ")}</p>
      {asked.isAllow && risky > 0 && <p class="small warn"><Icon name="alert" /> {t.riskyAll(risky)}</p>}
      {asked.isAllow && cut > 0 && <p class="small muted">{t.cutAll(cut)}</p>}
      <div class="row wrap actions">
        <Button kind={asked.isAllow ? "primary" : "danger"} icon={asked.isAllow ? "check" : "close"} aria-disabled={!isReady} onClick={() => send(asked.items)}>
          {asked.isAllow ? t.allowNow(asked.items.length) : t.denyNow(asked.items.length)}
        </Button>
        {asked.isAllow && risky > 0 && plain.length > 0 && <Button icon="check" aria-disabled={!isReady} onClick={() => send(plain)}>{t.allowPlain(plain.length)}</Button>}
        <Button kind="quiet" onClick={onBack}>{g.cancel}</Button>
      </div>
      <p class="small too-early" role="status">{wasTooEarly && g.early}</p>
    </div>
  );
}

function Report({ asked, outcomes, onRetry, onClose }: { asked: Asked; outcomes: Outcomes; onRetry: (failed: Asked) => void; onClose: () => void }) {
  const [t, g] = [useTexts(), useGateTexts()];
  const failed = asked.items.filter(({ gate }) => outcomes.get(gate.id));
  const codes = new Map<string, number>();
  for (const { gate } of failed) codes.set(outcomes.get(gate.id)!, (codes.get(outcomes.get(gate.id)!) ?? 0) + 1);
  const retryable = failed.filter(({ gate }) => !["answered_otherwise", "gate_closed", "gate_expired", "unknown_gate", "hash_mismatch"].includes(outcomes.get(gate.id)!));
  const done = asked.items.length - failed.length;
  return (
    <div class="report">
      <p class="row wrap" role="status">
        <span class="grow"><Icon name="check" /> {asked.isAllow ? t.allowed(done) : t.denied(done)}</span>
        <Button little kind="quiet" icon="close" aria-label={t.dismiss} onClick={onClose} />
      </p>
      {[...codes].map(([code, count]) => <ErrorLine key={code}>{count} × {problemText(code, code === "away", code, g)}</ErrorLine>)}
      {retryable.length > 0 && <Button little icon="redo" onClick={() => onRetry({ ...asked, items: retryable })}>{t.retry(retryable.length)}</Button>}
    </div>
  );
}
