/** Explain form: what the permission rules would decide for a call. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExplainView, GrantView, ToolRules } from "@everturn/client";
import { errorMessage, tools as allTools } from "../app/app";
import { useStore } from "../app/store";
import { defineTexts } from "../app/texts";
import { Button, ErrorLine, Field, Disclosure } from "../ui/components";
import { explainCall } from "./api";
import { ActionBadge, RuleRow, RuleSource } from "./ruleRow";
import { parseArguments, argumentTemplate } from "./rules";

const useTexts = defineTexts(
  {
    title: "What would happen?", about: "Describe a call to see which rule decides. Nothing is run.",
    tool: "Tool", arguments: "Arguments, as JSON", session: "In the conversation", anywhere: "a new one", explain: "Explain", notJson: "This is not a JSON object.",
    allow: "It would run at once.", ask: "A person would be asked.",
    open: "No rule fits it, so a person would be asked; the answer could be remembered.", deny: "It would be denied, and the model would be told so.",
    problem: "The arguments do not fit the tool. The model would be told so, and nothing would be asked or run.",
    manual: "A person does it by hand, whatever the rules allow.", review: "A person reads the result before the model does.",
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
    manual: "无论规则如何，都由人来执行。", review: "模型看到结果之前，由人先审核。",
    failures: "如果失败，模型看到结果之前由人先审核。",
    decided: "决定规则", others: (count: number) => `另有 ${count} 条匹配，但不起决定作用`, cases: (count: number) => `它包含 ${count} 个操作，分别判断`,
    words: "文字说明",
  },
);

export function ExplainForm({ agent, tools, grants, explanation, onExplained }: {
  agent: string; tools: readonly ToolRules[]; grants: readonly GrantView[]; explanation: ExplainView | null; onExplained: (view: ExplainView | null) => void;
}) {
  const t = useTexts();
  const known = useStore(allTools)?.tools ?? [];
  const [chosenTool, setChosenTool] = useState("");
  const tool = tools.some((candidate) => candidate.name === chosenTool) ? chosenTool : (tools.find((candidate) => candidate.approval !== "auto") ?? tools[0])!.name;
  const start = useMemo(() => JSON.stringify(argumentTemplate(known.find((candidate) => candidate.name === tool)?.schema ?? {}), null, 2), [tool, known]);
  const [text, setText] = useState(start);
  const [session, setSession] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => { setText(start); setProblem(""); onExplained(null); }, [start]);
  const places = new Map(grants.map((granted) => [granted.grant.session || granted.origin, granted.title] as const));
  const parsed = parseArguments(text);
  const change = (run: () => void) => { run(); setProblem(""); onExplained(null); };
  const ask = async (event: Event) => {
    event.preventDefault();
    if (parsed === undefined) return setProblem(t.notJson);
    setBusy(true);
    try {
      onExplained(await explainCall({ tool, arguments: parsed, agent, ...(session && { session }) }));
      setProblem("");
    } catch (error) {
      onExplained(null);
      setProblem(errorMessage(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="card explain" aria-labelledby="explain-title">
      <h2 id="explain-title">{t.title}</h2>
      <p class="small muted">{t.about}</p>
      <form class="form" onSubmit={ask}>
        <div class="fields">
          <Field label={t.tool}>
            <select class="input" value={tool} onChange={(event) => setChosenTool(event.currentTarget.value)}>
              {tools.map((tool) => <option key={tool.name} value={tool.name}>{tool.name}</option>)}
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
          <textarea class="input code" rows={Math.min(12, text.split("\n").length + 1)} spellcheck={false} autocomplete="off" value={text} aria-invalid={parsed === undefined}
            onInput={(event) => change(() => setText(event.currentTarget.value))} />
        </Field>
        <div class="row wrap">
          <Button type="submit" kind="primary" disabled={isBusy}>{t.explain}</Button>
          {problem && <ErrorLine>{problem}</ErrorLine>}
        </div>
      </form>
      <div aria-live="polite">{explanation && <Explanation explanation={explanation} />}</div>
    </section>
  );
}

function Explanation({ explanation }: { explanation: ExplainView }) {
  const t = useTexts();
  const sentence = explanation.action === "ask" && !explanation.is_final ? t.open : t[explanation.action];
  return (
    <div class="explanation" data-action={explanation.problem ? "problem" : explanation.action}>
      {explanation.problem ? (
        <>
          <p>{t.problem}</p>
          <p class="small muted">{explanation.problem}</p>
        </>
      ) : (
        <p class="row wrap decision"><ActionBadge action={explanation.action} /> <span>{sentence}</span></p>
      )}
      {explanation.manual && <p class="small">{t.manual}</p>}
      {explanation.action !== "deny" && explanation.review === "always" && <p class="small">{t.review}</p>}
      {explanation.action !== "deny" && explanation.review === "on_error" && <p class="small">{t.failures}</p>}
      {explanation.rule && <div class="by"><span class="small muted">{t.decided}</span><RuleRow view={explanation.rule} /></div>}
      {!explanation.rule && explanation.action === "deny" && explanation.reason && <p class="small muted">{explanation.reason}</p>}
      {explanation.cases.length > 1 && (
        <Disclosure open={explanation.cases.length <= 6} summary={<span class="small">{t.cases(explanation.cases.length)}</span>}>
          <ul class="plain cases">
            {explanation.cases.map((ruleCase, index) => (
              <li key={index} class="row wrap">
                <ActionBadge action={ruleCase.action} />
                {Object.entries(ruleCase.case).map(([name, value]) => <code key={name}>{name} = {JSON.stringify(value)}</code>)}
                {ruleCase.rule && <RuleSource rule={ruleCase.rule.rule} />}
              </li>
            ))}
          </ul>
        </Disclosure>
      )}
      {explanation.others.length > 0 && (
        <Disclosure summary={<span class="small">{t.others(explanation.others.length)}</span>}>
          <ul class="plain">{explanation.others.map((rule, index) => <li key={index}><RuleRow view={rule} /></li>)}</ul>
        </Disclosure>
      )}
      {explanation.lines.length > 0 && <Disclosure summary={<span class="small">{t.words}</span>}><pre class="lines">{explanation.lines.join("\n")}</pre></Disclosure>}
    </div>
  );
}
