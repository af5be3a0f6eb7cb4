/** Step line: usage, cost, duration and context fill of a model request. */
import type { StepPart, TurnState } from "@everturn/client";
import { agents } from "../app/app";
import { useStore } from "../app/store";
import { format, defineTexts } from "../app/texts";
import { Icon } from "../ui/components";

const useTexts = defineTexts(
  {
    step: (number: number) => `Step ${number}`, closing: "last step, without tools", input: (count: string) => `${count} in`, output: (count: string) => `${count} out`,
    cached: (count: string) => `${count} cached`, reasoning: (count: string) => `${count} reasoning`, estimated: "estimated",
    context: (used: string, all: string) => `Context: ${used} of ${all} tokens`,
    restarted: (count: number) => `The connection to the model broke, and the step began again${count > 1 ? ` (${count} times)` : ""}.`,
    length: "The answer was cut off: it reached the longest length the model may write.",
    content_filter: "The provider's content filter stopped the answer.",
    refusal: "The model declined to answer.",
    error: "The model's stream broke off here.", cancelled: "Stopped here.", other: "The model stopped for a reason it did not name.",
  },
  {
    step: (number: number) => `第 ${number} 步`, closing: "最后一步，不再使用工具", input: (count: string) => `输入 ${count}`, output: (count: string) => `输出 ${count}`,
    cached: (count: string) => `缓存 ${count}`, reasoning: (count: string) => `思考 ${count}`, estimated: "估算",
    context: (used: string, all: string) => `上下文：${used} / ${all} 个 token`,
    restarted: (count: number) => `与模型的连接中断，此步骤已重新开始${count > 1 ? `（${count} 次）` : ""}。`,
    length: "回答被截断：已达到模型允许的最大长度。",
    content_filter: "提供方的内容过滤器中止了回答。",
    refusal: "模型拒绝回答。",
    error: "模型的输出在此中断。", cancelled: "在此停止。", other: "模型未说明原因就停止了。",
  },
);

/** `isBare`: the step has no parts. If its request was refused, no stream was interrupted; the turn footer says what happened. */
export function StepLine({ part, turn, model, isBare }: { part: StepPart; turn: TurnState | undefined; model: string; isBare: boolean }) {
  const t = useTexts();
  const usage = part.usage ?? {};
  const step = turn?.steps.find((candidate) => candidate.number === part.step);
  const took = step?.ended && step.started ? step.ended - step.started : 0;
  const used = (usage.input ?? 0) + (usage.output ?? 0);
  const facts = [
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
