/** Step line: usage, cost, duration and context fill of a model request. */
import type { StepPart, TurnState } from "@everturn/client";
import { agents } from "../app/app";
import { useStore } from "../app/store";
import { format } from "../app/texts";
import { Icon } from "../ui/components";
import { showControls } from "./textEscapes";
import { useTexts } from "../locales/step.gen";

/** `isBare`: the step has no parts. If its request was refused, no stream was interrupted; the turn footer says what happened. */
export function StepLine({ part, turn, model, isBare }: { part: StepPart; turn: TurnState | undefined; model: string; isBare: boolean }) {
  const t = useTexts();
  const usage = part.usage ?? {};
  const step = turn?.steps.find((candidate) => candidate.number === part.step);
  const took = step?.ended && step.started ? step.ended - step.started : 0;
  const used = (usage.input ?? 0) + (usage.output ?? 0);
  const facts = [
    part.model ? t.writtenBy(showControls(part.model)) : "",
    usage.input ? t.input(format.number(usage.input)) + (usage.cached ? ` (${t.cached(format.number(usage.cached))})` : "") : "",
    usage.output ? t.output(format.number(usage.output)) + (usage.reasoning ? ` (${t.reasoning(format.number(usage.reasoning))})` : "") : "",
    usage.estimated ? t.estimated : "",
    usage.cost ? format.cost(usage.cost) : "",
    took ? format.seconds(took) : "",
    step?.closing ? t.closing : "",
  ].filter(Boolean);
  const warning = part.finish !== "stop" && part.finish !== "tool_calls" && part.finish in t ? t[part.finish as "length"] : "";
  return (
    <>
      {step && step.restarts > 0 && <p class="step-warning small"><Icon name="redo" />{t.restarted(step.restarts)}</p>}
      {step && step.retries.length > 0 && <p class="step-warning small"><Icon name="redo" />{t.retried(step.retries.length)}</p>}
      {warning && part.finish !== "cancelled" && !(isBare && part.finish === "error") && <p class="step-warning small"><Icon name="alert" />{warning}</p>}
      <p class="step-line" title={model}>
        <span>{t.step(part.step)}</span>
        {facts.map((item) => <span key={item}>{item}</span>)}
        <ContextMeter used={used} model={model} />
      </p>
    </>
  );
}

function ContextMeter({ used, model }: { used: number; model: string }) {
  const t = useTexts();
  const all = useStore(agents)?.models?.find((candidate) => candidate.name === model)?.context ?? 0;
  if (!all || !used) return null;
  const share = Math.min(1, used / all);
  const label = t.context(format.number(used), format.number(all));
  return (
    <span class={`context-meter ${share > 0.85 ? "full" : ""}`} role="meter" aria-valuemin={0} aria-valuemax={all} aria-valuenow={used}
      aria-label={label} title={label}>
      <span style={{ width: `${Math.max(2, share * 100)}%` }} />
    </span>
  );
}
