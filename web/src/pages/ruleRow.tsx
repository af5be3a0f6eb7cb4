/** Row of a permission rule. */
import type { RuleView } from "@everturn/client";
import { defineTexts } from "../app/texts";
import { Badge, type Tone } from "../ui/components";

const useTexts = defineTexts(
  { never: (why: string) => `Can never decide: ${why}`, decides: "decides", any: "any arguments", itself: "the tool itself", granted: "allowed by a person" },
  { never: (why: string) => `永远不会起作用：${why}`, decides: "起决定作用", any: "任意参数", itself: "工具自身", granted: "由人允许" },
);

export const useRuleTexts = defineTexts(
  {
    allow: "allow", ask: "ask", deny: "deny",
    defaults: "The tools themselves", config: "The configuration", agent: "This agent", session: "The session", grants: "Allowed by people",
    approval_auto: "runs by itself", approval_ask: "asks until allowed", approval_always: "asks every time", approval_deny: "never runs",
    review_always: "result reviewed", review_on_error: "failures reviewed",
  },
  {
    allow: "允许", ask: "询问", deny: "拒绝",
    defaults: "工具自身", config: "配置文件", agent: "此助手", session: "对话", grants: "由人允许",
    approval_auto: "自动执行", approval_ask: "询问直到获准", approval_always: "每次询问", approval_deny: "从不执行",
    review_always: "结果需审核", review_on_error: "失败需审核",
  },
);

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
