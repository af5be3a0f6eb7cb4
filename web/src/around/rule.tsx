/** One rule, as it is shown wherever there is one. */
import type { RuleView } from "@everturn/client";
import { words } from "../app/words";
import { Badge, type Tone } from "../ui/kit";

const useWords = words(
  { never: (why: string) => `Can never decide: ${why}`, decides: "decides", any: "any arguments", itself: "the tool itself", granted: "allowed by a person" },
  { never: (why: string) => `永远不会起作用：${why}`, decides: "起决定作用", any: "任意参数", itself: "工具自身", granted: "由人允许" },
);

export const useActions = words(
  {
    allow: "allow", ask: "ask", deny: "deny",
    defaults: "The tools themselves", config: "The configuration", agent: "This agent", session: "The session", grants: "Allowed by people",
    auto: "runs by itself", ask_once: "asks until allowed", execute_ask: "asks every time", execute_deny: "never runs",
    review_ask: "result reviewed", review_on_error: "failures reviewed",
  },
  {
    allow: "允许", ask: "询问", deny: "拒绝",
    defaults: "工具自身", config: "配置文件", agent: "此助手", session: "对话", grants: "由人允许",
    auto: "自动执行", ask_once: "询问直到获准", execute_ask: "每次询问", execute_deny: "从不执行",
    review_ask: "结果需审核", review_on_error: "失败需审核",
  },
);

const TONES: Readonly<Record<RuleView["rule"]["action"], Tone>> = { allow: "good", ask: "warn", deny: "bad" };

export function ActionBadge({ action }: { action: RuleView["rule"]["action"] }) {
  const a = useActions();
  return <Badge tone={TONES[action]}>{a[action]}</Badge>;
}

/** One rule: what it does, to what, and where it stands. */
export function RuleRow({ view, decides = false }: { view: RuleView; decides?: boolean }) {
  const t = useWords();
  return (
    <div class="rule" data-decides={decides || undefined}>
      <ActionBadge action={view.rule.action} />
      <div class="grow what">
        <code class="tool">{view.rule.tool}</code>
        <Match match={view.rule.match} />
        {decides && <Badge tone="accent" icon="check">{t.decides}</Badge>}
        {view.shadow && <p class="small shadow">{t.never(view.shadow)}</p>}
      </div>
      <Source rule={view.rule} />
    </div>
  );
}

/** Where a rule stands. */
export function Source({ rule }: { rule: RuleView["rule"] }) {
  const t = useWords();
  if (rule.layer === "defaults") return <span class="small muted source">{t.itself}</span>;
  if (rule.layer === "grants") return <span class="small muted source">{t.granted}</span>;
  return rule.source ? <code class="small muted source">{rule.source}</code> : null;
}

/** The arguments that a rule is about. */
export function Match({ match }: { match: RuleView["rule"]["match"] }) {
  const t = useWords();
  const all = Object.entries(match ?? {});
  if (all.length === 0) return <span class="small muted">{t.any}</span>;
  return <>{all.map(([name, pattern]) => <code class="match" key={name}>{name} = {JSON.stringify(pattern)}</code>)}</>;
}
