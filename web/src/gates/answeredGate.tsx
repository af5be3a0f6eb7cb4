/** Answered gate: the answer, who gave it and when. */
import type { GateState } from "@everturn/client";
import { format } from "../app/texts";
import { Badge, Disclosure, Icon } from "../ui/components";
import { Arguments, VisibleText } from "./visibleText";
import { escapeInvisible } from "./invisibleChars";
import { formatRule } from "./ruleText";
import { useGateTexts, type GateTexts } from "./texts";

export function actorName(by: string | undefined, t: GateTexts): string {
  if (!by) return t.person;
  return by.startsWith("plugin:") ? t.plugin(escapeInvisible(by.slice(7))) : escapeInvisible(by);
}

export function AnsweredGate({ gateState }: { gateState: GateState }) {
  const t = useGateTexts();
  const { gate, resolution, grant } = gateState;
  if (!resolution) return <p class="gate-line small muted"><Icon name="clock" /> {t.closed}</p>;
  const actor = actorName(resolution.by, t);
  const isExpired = resolution.by === "everturn" && !resolution.allowed;
  const what = isExpired ? t.nobody : headline(gateState, actor, t);
  return (
    <div class="gate-line small">
      <Icon name={resolution.allowed ? "check" : "close"} />
      <span>{what}</span>
      {gateState.answered > 0 && <span class="muted" title={format.moment(gateState.answered)}>{format.time(gateState.answered)}</span>}
      {resolution.arguments && <Badge tone="accent" icon="edit">{t.edited}</Badge>}
      {resolution.failed && <Badge tone="bad">{t.itFailed}</Badge>}
      {(grant ?? resolution.grant) && <Badge tone="warn" icon="lock" title={formatRule((grant?.rule ?? resolution.grant)!)}>{resolution.everywhere ? t.storedAll : t.stored}</Badge>}
      {resolution.reason && !isExpired && <span class="reason">{t.saidWhy}: <q dir="auto"><VisibleText text={resolution.reason} /></q></span>}
      {resolution.result !== undefined && resolution.result !== null && gate.kind !== "client" && (
        <Disclosure class="more" summary={<span class="muted">{t.answer}</span>}><pre class="visible-text" dir="auto"><VisibleText text={resolution.result} /></pre></Disclosure>
      )}
      {(grant ?? resolution.grant) && <code class="rule">{formatRule((grant?.rule ?? resolution.grant)!)}</code>}
      {resolution.arguments && <Disclosure class="more" summary={<span class="muted">{t.edited}</span>}><Arguments text={resolution.arguments} clip /></Disclosure>}
    </div>
  );
}

function headline({ gate, resolution }: GateState, actor: string, t: GateTexts): string {
  if (gate.kind === "result") {
    if (!resolution!.allowed) return t.withheldBy(actor);
    return resolution!.text !== undefined && resolution!.text !== null ? t.redactedBy(actor) : t.sentBy(actor);
  }
  if (!resolution!.allowed) return t.deniedBy(actor);
  if (resolution!.result !== undefined && resolution!.result !== null) return gate.kind === "form" || gate.kind === "question" || gate.kind === "client" ? t.filledBy(actor) : t.doneBy(actor);
  return t.allowedBy(actor);
}
