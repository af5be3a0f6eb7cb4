/** Permissions page: rules, tools and grants of an agent. */
import { useCallback, useState } from "preact/hooks";
import type { ExplainView, RuleView, ToolRules } from "@everturn/client";
import { agents, hasRole } from "../app/app";
import { settings } from "../app/settings";
import { useStore } from "../app/store";
import { Badge, Button, ErrorLine, Disclosure, Spinner, type Tone } from "../ui/components";
import { useFetch } from "../app/useFetch";
import { fetchGrants, fetchRules } from "./api";
import { ExplainForm } from "./explainForm";
import { Grants } from "./grants";
import { RuleRow, useRuleTexts } from "./ruleRow";
import { groupTools, isSameRule, groupByLayer, type Layer } from "./rules";
import "./permissions.css";
import { useTexts } from "../locales/permissions.gen";

export function Permissions() {
  const t = useTexts();
  const all = useStore(agents)?.agents ?? [];
  const [chosenAgent, setChosenAgent] = useState(settings.value.agent);
  const agent = all.some((agent) => agent.name === chosenAgent) ? chosenAgent : (all[0]?.name ?? "");
  const isMember = hasRole("member");
  const rules = useFetch(async () => (isMember ? fetchRules(agent) : undefined), agent, isMember);
  const grants = useFetch(fetchGrants);
  const [explanation, setExplanation] = useState<ExplainView | null>(null);
  const pick = (name: string) => { setChosenAgent(name); setExplanation(null); };
  const onExplained = useCallback((view: ExplainView | null) => setExplanation(view), []);
  return (
    <div class="page permissions">
      <div class="inner">
        <div class="row wrap">
          <h1 class="grow">{t.title}</h1>
          {isMember && all.length > 1 && (
            <label class="row small">
              {t.agent}
              <select class="input pick" value={agent} onChange={(event) => pick(event.currentTarget.value)}>
                {all.map((agent) => <option key={agent.name} value={agent.name}>{agent.name}</option>)}
              </select>
            </label>
          )}
        </div>
        <p class="muted">{isMember ? t.about : t.forMembers}</p>
        {rules.problem && <div class="row wrap"><ErrorLine>{rules.problem}</ErrorLine><Button little onClick={rules.reload}>{t.again}</Button></div>}
        {isMember && !rules.value && !rules.problem && <Spinner label={t.loading} />}
        {rules.value && rules.value.tools.length > 0 && <ExplainForm agent={rules.value.agent} tools={rules.value.tools} grants={grants.value?.grants ?? []} explanation={explanation} onExplained={onExplained} />}
        <Grants fetched={grants} />
        {rules.value && <Rules rules={rules.value.rules} explanation={explanation} />}
        {rules.value && <Tools tools={rules.value.tools} />}
      </div>
    </div>
  );
}

function Rules({ rules, explanation }: { rules: readonly RuleView[]; explanation: ExplainView | null }) {
  const t = useTexts();
  const a = useRuleTexts();
  return (
    <section class="part" aria-labelledby="the-rules">
      <h2 id="the-rules">{t.rules} <span class="muted count">{rules.length}</span></h2>
      {rules.length === 0 && <p class="card muted">{t.noRules}</p>}
      {groupByLayer(rules).map(([layer, rules]) => (
        <div class="card layer" key={layer}>
          <h3>{a[layer satisfies Layer]}</h3>
          <ul class="plain">{rules.map((rule, index) => <li key={index}><RuleRow view={rule} decides={isSameRule(explanation?.rule ?? null, rule)} /></li>)}</ul>
        </div>
      ))}
    </section>
  );
}

function Tools({ tools }: { tools: readonly ToolRules[] }) {
  const t = useTexts();
  return (
    <section class="part" aria-labelledby="the-tools">
      <h2 id="the-tools">{t.tools} <span class="muted count">{tools.length}</span></h2>
      {tools.length === 0 && <p class="card muted">{t.noTools}</p>}
      {groupTools(tools).map(([group, tools]) => (
        <div class="card group" key={group}>
          <Disclosure open={tools.length <= 12} summary={<h3>{group === "" ? t.alone : group.startsWith("mcp:") ? t.server(group.slice(4)) : group} <span class="muted count">{tools.length}</span></h3>}>
            <ul class="plain">{tools.map((tool) => <li key={tool.name}><ToolRow tool={tool} /></li>)}</ul>
          </Disclosure>
        </div>
      ))}
    </section>
  );
}

const APPROVAL_TONES: Readonly<Record<string, Tone | undefined>> = { auto: "good", ask: "warn", always: "warn", deny: "bad" };

function ToolRow({ tool }: { tool: ToolRules }) {
  const t = useTexts();
  const a = useRuleTexts();
  const how = { auto: a.approval_auto, ask: a.approval_ask, always: a.approval_always, deny: a.approval_deny }[tool.approval] ?? tool.approval;
  const subjects = Object.entries(tool.subjects).map(([name, kind]) => (name === kind ? name : `${name} (${kind})`)).join(", ");
  return (
    <div class="tool-row">
      <div class="grow">
        <code>{tool.name}</code>
        {subjects && <p class="small muted">{t.lookedAt(subjects)}</p>}
      </div>
      <div class="row wrap marks">
        {!tool.is_offered && <Badge tone="bad" title={t.notOfferedHint}>{t.notOffered}</Badge>}
        {tool.is_offered && <Badge tone={APPROVAL_TONES[tool.approval]}>{how}</Badge>}
        {tool.review === "always" && <Badge icon="eye">{a.review_always}</Badge>}
        {tool.review === "on_error" && <Badge icon="eye">{a.review_on_error}</Badge>}
        {tool.manual && <Badge>{t.manual}</Badge>}
        {tool.egress && <Badge tone="warn">{t.egress}</Badge>}
      </div>
    </div>
  );
}
