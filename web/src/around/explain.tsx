/** A call that nobody has made, and what would become of it. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExplainView, GrantedView, ToolRules } from "@everturn/client";
import { explain as inWords, tools as allTools } from "../app/app";
import { useStore } from "../app/store";
import { words } from "../app/words";
import { Button, ErrorLine, Field, Fold } from "../ui/kit";
import { explain } from "./calls";
import { ActionBadge, RuleRow, Source } from "./rule";
import { readArguments, template } from "./ruling";

const useWords = words(
  {
    title: "What would happen?", about: "Describe a call to see which rule decides. Nothing is run.",
    tool: "Tool", arguments: "Arguments, as JSON", session: "In the conversation", anywhere: "a new one", explain: "Explain", notJson: "This is not a JSON object.",
    allow: "It would run at once.", ask: "A person would be asked.",
    open: "No rule fits it, so a person would be asked; the answer could be remembered.", deny: "It would be denied, and the model would be told so.",
    problem: "The arguments do not fit the tool. The model would be told so, and nothing would be asked or run.",
    byHand: "A person does it by hand, whatever the rules allow.", review: "A person reads the result before the model does.",
    failures: "If it fails, a person reads the result before the model does.",
    decided: "Decided by", others: (count: number) => `${count} more fit, and do not decide`, cases: (count: number) => `It does ${count} things, each judged by itself`,
    words: "In words",
  },
  {
    title: "会怎样？", about: "描述一次调用，看看由哪条规则决定。不会执行任何操作。",
    tool: "工具", arguments: "参数（JSON）", session: "所在对话", anywhere: "新对话", explain: "说明", notJson: "这不是一个 JSON 对象。",
    allow: "会立即执行。", ask: "会先询问用户。",
    open: "没有匹配的规则，因此会先询问用户；答案可以被记住。", deny: "会被拒绝，并告知模型。",
    problem: "参数与工具不符。模型会得知，不会询问，也不会执行。",
    byHand: "无论规则如何，都由人来执行。", review: "模型看到结果之前，由人先审核。",
    failures: "如果失败，模型看到结果之前由人先审核。",
    decided: "决定规则", others: (count: number) => `另有 ${count} 条匹配，但不起决定作用`, cases: (count: number) => `它包含 ${count} 个操作，分别判断`,
    words: "文字说明",
  },
);

export function ExplainForm({ agent, tools, grants, told, onTold }: {
  agent: string; tools: readonly ToolRules[]; grants: readonly GrantedView[]; told: ExplainView | null; onTold: (view: ExplainView | null) => void;
}) {
  const t = useWords();
  const known = useStore(allTools)?.tools ?? [];
  const [chosen, choose] = useState("");
  const tool = tools.some((one) => one.name === chosen) ? chosen : (tools.find((one) => one.execute !== "auto") ?? tools[0])!.name;
  const start = useMemo(() => JSON.stringify(template(known.find((one) => one.name === tool)?.schema ?? {}), null, 2), [tool, known]);
  const [text, setText] = useState(start);
  const [session, setSession] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => { setText(start); setProblem(""); onTold(null); }, [start]);
  const places = new Map(grants.map((one) => [one.grant.session || one.origin, one.title] as const));
  const given = readArguments(text);
  const change = (run: () => void) => { run(); setProblem(""); onTold(null); };
  const ask = async (event: Event) => {
    event.preventDefault();
    if (given === undefined) return setProblem(t.notJson);
    setBusy(true);
    try {
      onTold(await explain({ tool, arguments: given, agent, ...(session && { session }) }));
      setProblem("");
    } catch (error) {
      onTold(null);
      setProblem(inWords(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="card explain" aria-labelledby="the-explaining">
      <h2 id="the-explaining">{t.title}</h2>
      <p class="small muted">{t.about}</p>
      <form class="form" onSubmit={ask}>
        <div class="fields">
          <Field label={t.tool}>
            <select class="input" value={tool} onChange={(event) => choose(event.currentTarget.value)}>
              {tools.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
            </select>
          </Field>
          {places.size > 0 && (
            <Field label={t.session}>
              <select class="input" value={session} onChange={(event) => change(() => setSession(event.currentTarget.value))}>
                <option value="">{t.anywhere}</option>
                {[...places].map(([id, title]) => <option key={id} value={id}>{title || id}</option>)}
              </select>
            </Field>
          )}
        </div>
        <Field label={t.arguments}>
          <textarea class="input code" rows={Math.min(12, text.split("\n").length + 1)} spellcheck={false} autocomplete="off" value={text} aria-invalid={given === undefined}
            onInput={(event) => change(() => setText(event.currentTarget.value))} />
        </Field>
        <div class="row wrap">
          <Button type="submit" kind="primary" disabled={isBusy}>{t.explain}</Button>
          {problem && <ErrorLine>{problem}</ErrorLine>}
        </div>
      </form>
      <div aria-live="polite">{told && <Told told={told} />}</div>
    </section>
  );
}

function Told({ told }: { told: ExplainView }) {
  const t = useWords();
  const sentence = told.action === "ask" && !told.is_final ? t.open : t[told.action];
  return (
    <div class="told" data-action={told.problem ? "problem" : told.action}>
      {told.problem ? (
        <>
          <p>{t.problem}</p>
          <p class="small muted">{told.problem}</p>
        </>
      ) : (
        <p class="row wrap verdict"><ActionBadge action={told.action} /> <span>{sentence}</span></p>
      )}
      {told.by_hand && <p class="small">{t.byHand}</p>}
      {told.action !== "deny" && told.review === "ask" && <p class="small">{t.review}</p>}
      {told.action !== "deny" && told.review === "on_error" && <p class="small">{t.failures}</p>}
      {told.rule && <div class="by"><span class="small muted">{t.decided}</span><RuleRow view={told.rule} /></div>}
      {!told.rule && told.action === "deny" && told.reason && <p class="small muted">{told.reason}</p>}
      {told.cases.length > 1 && (
        <Fold open={told.cases.length <= 6} summary={<span class="small">{t.cases(told.cases.length)}</span>}>
          <ul class="plain cases">
            {told.cases.map((one, at) => (
              <li key={at} class="row wrap">
                <ActionBadge action={one.action} />
                {Object.entries(one.case).map(([name, value]) => <code key={name}>{name} = {JSON.stringify(value)}</code>)}
                {one.rule && <Source rule={one.rule.rule} />}
              </li>
            ))}
          </ul>
        </Fold>
      )}
      {told.others.length > 0 && (
        <Fold summary={<span class="small">{t.others(told.others.length)}</span>}>
          <ul class="plain">{told.others.map((one, at) => <li key={at}><RuleRow view={one} /></li>)}</ul>
        </Fold>
      )}
      {told.lines.length > 0 && <Fold summary={<span class="small">{t.words}</span>}><pre class="lines">{told.lines.join("\n")}</pre></Fold>}
    </div>
  );
}
