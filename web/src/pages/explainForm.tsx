/** Explain form: what the permission rules would decide for a call. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExplainCall, ExplainView, GrantView, ToolRules } from "@everturn/client";
import { errorMessage, tools as allTools } from "../app/app";
import { useStore } from "../app/store";
import { Button, ErrorLine, Field, Disclosure } from "../ui/components";
import { explainCall } from "./api";
import { ActionBadge, RuleRow, RuleSource } from "./ruleRow";
import { parseArguments, argumentTemplate } from "./rules";
import { useTexts } from "../locales/explainForm.gen";

export function ExplainForm({ agent, tools, grants, explanation, onExplained, about, explain = explainCall }: {
  agent: string; tools: readonly ToolRules[]; grants: readonly GrantView[]; explanation: ExplainView | null; onExplained: (view: ExplainView | null) => void;
  about?: string; explain?: (request: ExplainCall) => Promise<ExplainView>;
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
      onExplained(await explain({ tool, arguments: parsed, agent, ...(session && { session }) }));
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
      <p class="small muted">{about ?? t.about}</p>
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
      {explanation.warnings.map((text) => <p class="small muted" key={text}>{warningText(text, t.notOffered)}</p>)}
      {explanation.lines.length > 0 && <Disclosure summary={<span class="small">{t.words}</span>}><pre class="lines">{explanation.lines.join("\n")}</pre></Disclosure>}
    </div>
  );
}

/** A warning of the server; the usual one in the language of the page. */
function warningText(text: string, notOffered: (tools: string) => string): string {
  const tools = /^not offered to the model, because rules deny every call: (.+)$/.exec(text)?.[1];
  return tools ? notOffered(tools) : text;
}
