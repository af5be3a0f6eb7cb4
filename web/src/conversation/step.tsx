/** Steps of an answer: what went wrong in them, and one line with their tokens, cost and duration. */
import type { Message, Part, SessionFollower, StepPart, TurnState, Usage } from "@everturn/client";
import { agents, attempt, client, toast } from "../app/app";
import { useStore } from "../app/store";
import { format } from "../app/texts";
import { Button, Icon } from "../ui/components";
import { showControls } from "./textEscapes";
import { useTexts } from "../locales/step.gen";

/** What went wrong in a step. `isBare`: it has no parts; if its request was refused, no stream was interrupted, and the turn footer says what happened. */
export function StepWarnings({ part, turn, isBare }: { part: StepPart; turn: TurnState | undefined; isBare: boolean }) {
  const t = useTexts();
  const step = turn?.steps.find((candidate) => candidate.number === part.step);
  const warning = part.finish !== "stop" && part.finish !== "tool_calls" && part.finish in t ? t[part.finish as "length"] : "";
  return (
    <>
      {step && step.restarts > 0 && <p class="step-warning small"><Icon name="redo" />{t.restarted(step.restarts)}</p>}
      {step && step.retries.length > 0 && <p class="step-warning small"><Icon name="redo" />{t.retried(step.retries.length)}</p>}
      {warning && part.finish !== "cancelled" && !(isBare && part.finish === "error") && <p class="step-warning small"><Icon name="alert" />{warning}</p>}
    </>
  );
}

/** What can be forked: an answer in which the person may continue after a step. */
export interface ForkableAnswer {
  session: SessionFollower;
  message: Message;
}

interface UsageProps {
  parts: readonly Part[];
  turn: TurnState | undefined;
  by: string;
  fork?: ForkableAnswer | undefined;
}

/** One line under an answer: tokens, cost and seconds of its steps. With several steps it opens to a line for each, from which one can continue. */
export function AnswerUsage({ parts, turn, by, fork }: UsageProps) {
  const t = useTexts();
  const steps = parts.filter((part) => part.type === "step");
  if (!steps.length) return null;
  const lines = steps.map((part) => ({ part, took: secondsOf(turn, part), model: part.model || by }));
  if (lines.length === 1) return <p class="step-line"><StepFacts {...lines[0]!} turn={turn} /></p>;
  const usages = steps.map((part) => part.usage ?? {});
  const sum = (pick: (usage: Usage) => number | null | undefined) => usages.reduce((total, usage) => total + (pick(usage) ?? 0), 0);
  const facts = [
    t.steps(steps.length), ...tokenFacts(t, { input: sum((usage) => usage.input), output: sum((usage) => usage.output), cached: sum((usage) => usage.cached) }),
    ...costFacts(sum((usage) => usage.cost), lines.reduce((total, { took }) => total + took, 0)),
  ];
  return (
    <details class="answer-usage">
      <summary class="step-line">{facts.map((fact) => <span key={fact}>{fact}</span>)}</summary>
      {lines.map((line, index) => (
        <p key={line.part.step} class="step-line">
          <span>{t.step(line.part.step)}</span><StepFacts {...line} turn={turn} />
          {fork && index < lines.length - 1 && isForkable(line.part) && <ForkButtons {...fork} step={line.part.step} />}
        </p>
      ))}
    </details>
  );
}

/** A step that broke off cannot be continued, and one whose text was cut is continued by the next. */
const isForkable = (part: StepPart): boolean => part.finish !== "cancelled" && part.finish !== "error" && !part.continues;

/** Continue after a step: the model at once, or with the next message. */
function ForkButtons({ session, message, step }: ForkableAnswer & { step: number }) {
  const t = useTexts();
  const rerun = () => void attempt(client.rerun(session.id, message.id, { after_step: step, at_step_limit: "ask" }));
  const wait = async () => {
    if (!(await attempt(client.fork(session.id, message.id, step)))) return;
    toast(t.continued(step));
    document.querySelector<HTMLElement>("#main .composer textarea, #main textarea")?.focus();
  };
  return (
    <>
      <Button kind="quiet" little icon="redo" aria-label={t.rerunAfter(step)} onClick={rerun} />
      <Button kind="quiet" little icon="branch" aria-label={t.continueAfter(step)} onClick={() => void wait()} />
    </>
  );
}

/** Says of the copy of an answer's first steps what it is. */
export function CopiedSteps({ parts }: { parts: readonly Part[] }) {
  const t = useTexts();
  return <p class="step-line">{t.copied(parts.filter((part) => part.type === "step").length)}</p>;
}

function StepFacts({ part, took, model, turn }: { part: StepPart; took: number; model: string; turn: TurnState | undefined }) {
  const t = useTexts();
  const usage = part.usage ?? {};
  const facts = [
    part.model ? t.writtenBy(showControls(part.model)) : "",
    ...tokenFacts(t, usage), usage.estimated ? t.estimated : "", ...costFacts(usage.cost ?? 0, took),
    turn?.steps.find((candidate) => candidate.number === part.step)?.closing ? t.closing : "",
  ].filter(Boolean);
  return <>{facts.map((fact) => <span key={fact}>{fact}</span>)}<ContextMeter used={(usage.input ?? 0) + (usage.output ?? 0)} model={model} /></>;
}

/** Seconds of a step's model request. */
function secondsOf(turn: TurnState | undefined, part: StepPart): number {
  const step = turn?.steps.find((candidate) => candidate.number === part.step);
  return step?.ended && step.started ? step.ended - step.started : 0;
}

const tokenFacts = (t: ReturnType<typeof useTexts>, { input, output, cached, reasoning }: Usage): string[] => [
  input ? t.input(format.number(input)) + (cached ? ` (${t.cached(format.number(cached))})` : "") : "",
  output ? t.output(format.number(output)) + (reasoning ? ` (${t.reasoning(format.number(reasoning))})` : "") : "",
].filter(Boolean);

const costFacts = (cost: number, took: number): string[] => [cost ? format.cost(cost) : "", took ? format.seconds(took) : ""].filter(Boolean);

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
