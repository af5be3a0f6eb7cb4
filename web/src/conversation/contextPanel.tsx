/** Context panel: what fills the context window of a conversation, when it is compacted, and a button that compacts it now. */
import { useState } from "preact/hooks";
import type { ContextReport } from "@everturn/client";
import { attempt, client, getSessionFollower, mayWrite } from "../app/app";
import { lazy } from "../app/lazy";
import { navigate, route } from "../app/route";
import { format } from "../app/texts";
import { Button, Dialog, ErrorLine, Field, Icon, Spinner } from "../ui/components";
import { useContextReport } from "./contextGauge";
import { buildBar, lastTurns, nextStep, urgency, type Piece } from "./contextReport";
import { showControls } from "./textEscapes";
import "./contextPanel.css";
import { useTexts } from "../locales/contextPanel.gen";

const Instructions = lazy(async () => (await import("../pages/instructions")).Instructions);

export function ContextPanel({ session: id, onClose }: { session: string; onClose: () => void }) {
  const t = useTexts();
  const { value, problem, isRunning } = useContextReport(getSessionFollower(id));
  return (
    <Dialog title={t.title} onClose={onClose}>
      {value ? <ReportView report={value} /> : problem ? <ErrorLine>{problem}</ErrorLine> : <Spinner label={t.loading} />}
      <details class="layers"><summary>{t.instructions}</summary><Instructions session={id} /></details>
      {mayWrite(id) && <CompactForm session={id} isRunning={isRunning} onDone={onClose} />}
    </Dialog>
  );
}

export function ReportView({ report }: { report: ContextReport }) {
  const t = useTexts();
  const { used = 0, limit = 0, window = 0, share, model } = report;
  const name = showControls(model);
  const tone = urgency(report);
  const next = nextStep(report);
  return (
    <div class="context-report">
      <p class="sum">
        <strong>{limit ? t.of(format.tokens(used), format.tokens(limit)) : t.only(format.tokens(used))}</strong>
        {limit > 0 && share != null && <span class={`share ${tone}`}>{format.percent(share)}</span>}
      </p>
      {tone && next === "summarise" && <p class="soon"><Icon name="alert" />{t.soon(format.percent(report.summarize_at! / limit))}</p>}
      <StackedBar report={report} />
      <div class="small muted facts">
        <p>{window ? t.reads(name, format.tokens(window), format.tokens(Math.max(0, window - limit))) : t.unknown(name)} {report.estimated && t.estimated}</p>
        <Policy report={report} />
      </div>
    </div>
  );
}

function StackedBar({ report }: { report: ContextReport }) {
  const t = useTexts();
  const { pieces, marks } = buildBar(report);
  const isKnown = (report.limit ?? 0) > 0;
  const describe = ({ kind, tokens }: Piece) => `${t[kind]} ${format.tokens(tokens)}`;
  return (
    <>
      <div class="context-bar" role="img" aria-label={`${t.bar}: ${pieces.map(describe).join(", ")}`}>
        {pieces.map((piece) => <span key={piece.kind} class={`piece ${piece.kind}`} style={{ width: `${piece.width}%` }} title={describe(piece)} />)}
        {marks.map(({ at, place }) => <span key={at} class={`mark ${at}`} style={{ left: `${place}%` }} />)}
      </div>
      <ul class="context-legend">
        {pieces.map((piece) => (
          <li key={piece.kind}>
            <span class={`swatch ${piece.kind}`} aria-hidden="true" />
            <span class="grow">{t[piece.kind]}</span>
            <span class="tokens">{format.tokens(piece.tokens)}</span>
            {isKnown && <span class="width muted">{piece.width < 0.5 ? `<${format.percent(0.01)}` : format.percent(piece.width / 100)}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Policy({ report }: { report: ContextReport }) {
  const t = useTexts();
  const { limit = 0, clear_at: clear = 0, summarize_at: summarise = 0, policy = "auto" } = report;
  const next = nextStep(report);
  const share = (tokens: number) => format.percent(tokens / limit);
  return (
    <>
      {clear > 0 && <p class="threshold"><span class="mark clear" aria-hidden="true" />{t.clear(format.tokens(clear), share(clear))}</p>}
      {next === "paused" ? <p>{t.paused}</p> : summarise > 0 && <p class="threshold"><span class="mark summarise" aria-hidden="true" />{t.summarise(format.tokens(summarise), share(summarise))}</p>}
      {next === "off" && <p>{t.off}</p>}
      {next === "lastTurns" && <p>{t.lastTurns(lastTurns(policy))}</p>}
      {next === "unknown" && <p>{t.auto}</p>}
      <p>{report.summarizing ? t.summarizing : t.compactions(report.compactions ?? 0)}</p>
    </>
  );
}

const MAX_FOCUS = 2000; // characters, as the server accepts them

function CompactForm({ session, isRunning, onDone }: { session: string; isRunning: boolean; onDone: () => void }) {
  const t = useTexts();
  const [focus, setFocus] = useState("");
  const [isBusy, setBusy] = useState(false);
  const compact = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const sent = await attempt(client.compact(session, { focus: focus.trim() }));
    setBusy(false);
    if (!sent) return;
    onDone();
    if (!("session" in route.value) || route.value.session !== session) navigate({ page: "session", session });
  };
  return (
    <form class="compact-form" onSubmit={(event) => void compact(event)}>
      <Field label={t.focus} hint={isRunning ? t.running : t.hint}>
        <input class="input" dir="auto" maxLength={MAX_FOCUS} value={focus} onInput={(event) => setFocus(event.currentTarget.value)} />
      </Field>
      <Button type="submit" kind="primary" icon="compact" disabled={isBusy || isRunning}>{t.now}</Button>
    </form>
  );
}
