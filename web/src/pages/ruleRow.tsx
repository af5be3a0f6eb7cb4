/** Row of a permission rule. */
import type { RuleView } from "@everturn/client";
import { Badge, type Tone } from "../ui/components";
import { useTexts } from "../locales/ruleRow.gen";
import { useTexts as useRuleTexts } from "../locales/rules.gen";

export { useTexts as useRuleTexts } from "../locales/rules.gen";

const TONES: Readonly<Record<RuleView["rule"]["action"], Tone>> = { allow: "good", ask: "warn", deny: "bad" };

export function ActionBadge({ action }: { action: RuleView["rule"]["action"] }) {
  const a = useRuleTexts();
  return <Badge tone={TONES[action]}>{a[action]}</Badge>;
}

/** A rule: its action, what it matches, and where it is defined. */
export function RuleRow({ view, decides = false }: { view: RuleView; decides?: boolean }) {
  const t = useTexts();
  return (
    <div class="rule" data-decides={decides || undefined}>
      <ActionBadge action={view.rule.action} />
      <div class="grow what">
        <code class="tool">{view.rule.tool}</code>
        <RuleMatch match={view.rule.match} />
        {decides && <Badge tone="accent" icon="check">{t.decides}</Badge>}
        {view.shadow && <p class="small shadow">{t.never(view.shadow)}</p>}
      </div>
      <RuleSource rule={view.rule} />
    </div>
  );
}

/** Where a rule is defined. */
export function RuleSource({ rule }: { rule: RuleView["rule"] }) {
  const t = useTexts();
  if (rule.layer === "defaults") return <span class="small muted source">{t.itself}</span>;
  if (rule.layer === "grants") return <span class="small muted source">{t.granted}</span>;
  return rule.source ? <code class="small muted source">{rule.source}</code> : null;
}

/** The arguments that a rule matches. */
export function RuleMatch({ match }: { match: RuleView["rule"]["match"] }) {
  const t = useTexts();
  const all = Object.entries(match ?? {});
  if (all.length === 0) return <span class="small muted">{t.any}</span>;
  return <>{all.map(([name, pattern]) => <code class="match" key={name}>{name} = {JSON.stringify(pattern)}</code>)}</>;
}
