/** What decides on the calls of an agent: its rules, its tools' own words, and what people have allowed from then on. */
import { useCallback, useState } from "preact/hooks";
import type { ExplainView, RuleView, ToolRules } from "@everturn/client";
import { agents, may } from "../app/app";
import { settings } from "../app/settings";
import { useStore } from "../app/store";
import { words } from "../app/words";
import { Badge, Button, ErrorLine, Fold, Spinner, type Tone } from "../ui/kit";
import { rules as readRules, granted as readGranted, useRead } from "./calls";
import { ExplainForm } from "./explain";
import { Grants } from "./grants";
import { RuleRow, useActions } from "./rule";
import { groupsOf, isSame, layersOf, type Layer } from "./ruling";
import "./permissions.css";

const useWords = words(
  {
    title: "Permissions", agent: "Agent", loading: "Loading", again: "Try again",
    about: "Deny beats ask, and ask beats allow, wherever a rule stands. What no rule fits is asked about.",
    rules: "Rules", noRules: "There are no rules: each tool does what it says of itself, and whatever it leaves open is asked about.",
    tools: "Tools", noTools: "This agent has no tools.", alone: "In no group", server: (name: string) => `MCP server ${name}`,
    notOffered: "not offered", notOfferedHint: "Denied outright, so the model is not told of it",
    byHand: "done by a person", egress: "sends data out", lookedAt: (names: string) => `Rules look at: ${names}`,
    forMembers: "Rules are shown to members; you can see what was allowed.",
  },
  {
    title: "权限", agent: "助手", loading: "加载中", again: "重试",
    about: "无论规则写在哪里，拒绝优先于询问，询问优先于允许。没有规则匹配的调用会先询问。",
    rules: "规则", noRules: "没有规则：每个工具按自身的设定执行，未设定的调用会先询问。",
    tools: "工具", noTools: "这个助手没有工具。", alone: "未分组", server: (name: string) => `MCP 服务器 ${name}`,
    notOffered: "不提供", notOfferedHint: "已被完全拒绝，模型看不到它",
    byHand: "由人执行", egress: "会向外发送数据", lookedAt: (names: string) => `规则检查的参数：${names}`,
    forMembers: "规则仅对成员可见；您可以查看已允许的内容。",
  },
);

export function Permissions() {
  const t = useWords();
  const all = useStore(agents)?.agents ?? [];
  const [chosen, choose] = useState(settings.value.agent);
  const agent = all.some((one) => one.name === chosen) ? chosen : (all[0]?.name ?? "");
  const isMember = may("member");
  const rules = useRead(async () => (isMember ? readRules(agent) : undefined), agent, isMember);
  const grants = useRead(readGranted);
  const [told, setTold] = useState<ExplainView | null>(null);
  const pick = (name: string) => { choose(name); setTold(null); };
  const onTold = useCallback((view: ExplainView | null) => setTold(view), []);
  return (
    <div class="page permissions">
      <div class="inner">
        <div class="row wrap">
          <h1 class="grow">{t.title}</h1>
          {isMember && all.length > 1 && (
            <label class="row small">
              {t.agent}
              <select class="input pick" value={agent} onChange={(event) => pick(event.currentTarget.value)}>
                {all.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
              </select>
            </label>
          )}
        </div>
        <p class="muted">{isMember ? t.about : t.forMembers}</p>
        {rules.problem && <div class="row wrap"><ErrorLine>{rules.problem}</ErrorLine><Button little onClick={rules.again}>{t.again}</Button></div>}
        {isMember && !rules.value && !rules.problem && <Spinner label={t.loading} />}
        {rules.value && rules.value.tools.length > 0 && <ExplainForm agent={rules.value.agent} tools={rules.value.tools} grants={grants.value?.grants ?? []} told={told} onTold={onTold} />}
        <Grants read={grants} />
        {rules.value && <Rules rules={rules.value.rules} told={told} />}
        {rules.value && <Tools tools={rules.value.tools} />}
      </div>
    </div>
  );
}

function Rules({ rules, told }: { rules: readonly RuleView[]; told: ExplainView | null }) {
  const t = useWords();
  const a = useActions();
  return (
    <section class="part" aria-labelledby="the-rules">
      <h2 id="the-rules">{t.rules} <span class="muted count">{rules.length}</span></h2>
      {rules.length === 0 && <p class="card muted">{t.noRules}</p>}
      {layersOf(rules).map(([layer, some]) => (
        <div class="card layer" key={layer}>
          <h3>{a[layer satisfies Layer]}</h3>
          <ul class="plain">{some.map((one, at) => <li key={at}><RuleRow view={one} decides={isSame(told?.rule ?? null, one)} /></li>)}</ul>
        </div>
      ))}
    </section>
  );
}

function Tools({ tools }: { tools: readonly ToolRules[] }) {
  const t = useWords();
  return (
    <section class="part" aria-labelledby="the-tools">
      <h2 id="the-tools">{t.tools} <span class="muted count">{tools.length}</span></h2>
      {tools.length === 0 && <p class="card muted">{t.noTools}</p>}
      {groupsOf(tools).map(([group, some]) => (
        <div class="card group" key={group}>
          <Fold open={some.length <= 12} summary={<h3>{group === "" ? t.alone : group.startsWith("mcp:") ? t.server(group.slice(4)) : group} <span class="muted count">{some.length}</span></h3>}>
            <ul class="plain">{some.map((one) => <li key={one.name}><ToolRow tool={one} /></li>)}</ul>
          </Fold>
        </div>
      ))}
    </section>
  );
}

const EXECUTE: Readonly<Record<string, Tone | undefined>> = { auto: "good", ask_once: "warn", ask: "warn", deny: "bad" };

function ToolRow({ tool }: { tool: ToolRules }) {
  const t = useWords();
  const a = useActions();
  const how = { auto: a.auto, ask_once: a.ask_once, ask: a.execute_ask, deny: a.execute_deny }[tool.execute] ?? tool.execute;
  const looked = Object.entries(tool.subjects).map(([name, kind]) => (name === kind ? name : `${name} (${kind})`)).join(", ");
  return (
    <div class="tool-row">
      <div class="grow">
        <code>{tool.name}</code>
        {looked && <p class="small muted">{t.lookedAt(looked)}</p>}
      </div>
      <div class="row wrap marks">
        {!tool.is_offered && <Badge tone="bad" title={t.notOfferedHint}>{t.notOffered}</Badge>}
        {tool.is_offered && <Badge tone={EXECUTE[tool.execute]}>{how}</Badge>}
        {tool.result === "ask" && <Badge icon="eye">{a.review_ask}</Badge>}
        {tool.result === "on_error" && <Badge icon="eye">{a.review_on_error}</Badge>}
        {tool.by_hand && <Badge>{t.byHand}</Badge>}
        {tool.egress && <Badge tone="warn">{t.egress}</Badge>}
      </div>
    </div>
  );
}
