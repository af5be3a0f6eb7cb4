/** Context gauge: a ring that shows how full the context window is. It opens the panel that says what fills it. */
import { useEffect } from "preact/hooks";
import { isOver, type ContextReport, type SessionFollower } from "@everturn/client";
import { client, contextPanel, conversationCosts } from "../app/app";
import { useTopics } from "../app/store";
import { format } from "../app/texts";
import { useFetch, type Fetched } from "../app/useFetch";
import { currentChoice, useCurrentChoice } from "../pages/pickers";
import { nextStep, urgency } from "./contextReport";
import "./contextGauge.css";
import { useTexts } from "../locales/contextGauge.gen";

/** The report of a session, fetched again when a turn starts or ends, a message is added or deleted, or another branch or model is chosen. */
export function useContextReport(session: SessionFollower): Fetched<ContextReport> & { readonly isRunning: boolean } {
  useTopics(session, "tree");
  useCurrentChoice(session.id);
  const { agent, model } = currentChoice(session.id);
  const asked = agent ? "" : model; // a model of another agent than the session's is not known to it
  const { turns, leaf, deleted } = session.state;
  const running = [...turns.values()].findLast((turn) => turn.started > 0 && !isOver(turn))?.id ?? "";
  const fetched = useFetch(() => client.context(session.id, { model: asked || undefined }), session.id, asked, leaf, deleted.size, running);
  return { ...fetched, isRunning: running !== "" };
}

export function ContextGauge({ session }: { session: SessionFollower }) {
  const { value } = useContextReport(session);
  useEffect(() => {
    if (value?.cost != null) conversationCosts.set(new Map(conversationCosts.value).set(session.id, value.cost));
  }, [session, value]);
  return value?.used ? <GaugeButton report={value} onClick={() => contextPanel.set(session.id)} /> : null;
}

export function GaugeButton({ report, onClick }: { report: ContextReport; onClick: () => void }) {
  const t = useTexts();
  const { used = 0, limit = 0, share } = report;
  const isKnown = limit > 0 && share != null;
  const tone = urgency(report);
  const label = [
    isKnown ? t.of(format.tokens(used), format.tokens(limit), format.percent(share)) : t.only(format.tokens(used)),
    tone && nextStep(report) === "summarise" ? t.summarise(format.percent(report.summarize_at! / limit)) : "",
  ].filter(Boolean).join(". ");
  return (
    <button type="button" class={`button quiet little context-gauge ${tone}`} title={label} aria-haspopup="dialog" onClick={onClick}>
      {isKnown && <Ring share={share} />}
      <span class="visually-hidden">{label}</span>
      <span class="amount" aria-hidden="true">{isKnown ? format.percent(share) : format.tokens(used)}</span>
    </button>
  );
}

const LENGTH = 2 * Math.PI * 8; // of a circle with the radius 8

function Ring({ share }: { share: number }) {
  return (
    <svg class="ring" viewBox="0 0 20 20" aria-hidden="true">
      <circle cx="10" cy="10" r="8" />
      <circle class="used" cx="10" cy="10" r="8" stroke-dasharray={LENGTH} stroke-dashoffset={LENGTH * (1 - Math.min(1, Math.max(0.02, share)))} />
    </svg>
  );
}
