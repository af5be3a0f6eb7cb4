/** What was answered, by whom and when. */
import type { GateState } from "@everturn/client";
import { say } from "../app/words";
import { Badge, Fold, Icon } from "../ui/kit";
import { Arguments, Exact } from "./exact";
import { plain } from "./hidden";
import { sayRule } from "./rule";
import { useGateWords, type GateWords } from "./words";

export function whoIs(by: string | undefined, t: GateWords): string {
  if (!by) return t.person;
  return by.startsWith("plugin:") ? t.plugin(plain(by.slice(7))) : plain(by);
}

export function AnsweredGate({ asked }: { asked: GateState }) {
  const t = useGateWords();
  const { gate, verdict, grant } = asked;
  if (!verdict) return <p class="gate-line small muted"><Icon name="clock" /> {t.closed}</p>;
  const who = whoIs(verdict.by, t);
  const isExpired = verdict.by === "everturn" && !verdict.allowed;
  const what = isExpired ? t.nobody : headline(asked, who, t);
  return (
    <div class="gate-line small">
      <Icon name={verdict.allowed ? "check" : "close"} />
      <span>{what}</span>
      {asked.answered > 0 && <span class="muted" title={say.moment(asked.answered)}>{say.time(asked.answered)}</span>}
      {verdict.arguments && <Badge tone="accent" icon="edit">{t.edited}</Badge>}
      {verdict.failed && <Badge tone="bad">{t.itFailed}</Badge>}
      {(grant ?? verdict.grant) && <Badge tone="warn" icon="lock" title={sayRule((grant?.rule ?? verdict.grant)!)}>{verdict.everywhere ? t.storedAll : t.stored}</Badge>}
      {verdict.reason && !isExpired && <span class="reason">{t.saidWhy}: <q dir="auto"><Exact text={verdict.reason} /></q></span>}
      {verdict.result !== undefined && verdict.result !== null && gate.kind !== "client" && (
        <Fold class="more" summary={<span class="muted">{t.answer}</span>}><pre class="exact" dir="auto"><Exact text={verdict.result} /></pre></Fold>
      )}
      {(grant ?? verdict.grant) && <code class="rule">{sayRule((grant?.rule ?? verdict.grant)!)}</code>}
      {verdict.arguments && <Fold class="more" summary={<span class="muted">{t.edited}</span>}><Arguments text={verdict.arguments} clip /></Fold>}
    </div>
  );
}

function headline({ gate, verdict }: GateState, who: string, t: GateWords): string {
  if (gate.kind === "result") {
    if (!verdict!.allowed) return t.withheldBy(who);
    return verdict!.text !== undefined && verdict!.text !== null ? t.redactedBy(who) : t.sentBy(who);
  }
  if (!verdict!.allowed) return t.deniedBy(who);
  if (verdict!.result !== undefined && verdict!.result !== null) return gate.kind === "form" || gate.kind === "question" || gate.kind === "client" ? t.filledBy(who) : t.doneBy(who);
  return t.allowedBy(who);
}
