/** Review of a draft of rules before it is saved: what it changes and loosens, and how it would have decided past calls. */
import { useState } from "preact/hooks";
import type { DryRunGroup, DryRunView, RuleChangeView } from "@everturn/client";
import { attempt } from "../../app/app";
import { hrefFor } from "../../app/route";
import { format } from "../../app/texts";
import { Badge, Button, Dialog, Disclosure, ErrorLine, Icon, Spinner } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { ActionBadge, RuleSource } from "../ruleRow";
import { dryRunRules, putRules, type RuleScope } from "./api";
import { cleanRule, type Draft } from "./ruleDraft";
import { useTexts } from "../../locales/adminRules.gen";

const CALLS = [50, 200, 1000] as const;

export function RuleReview({ scope, draft, version, onSaved, onClose }: { scope: RuleScope; draft: Draft; version: number; onSaved: () => void; onClose: () => void }) {
  const t = useTexts();
  const [calls, setCalls] = useState<number>(200);
  const [isBusy, setBusy] = useState(false);
  const rules = draft.map(cleanRule);
  const run = useFetch(() => dryRunRules(scope, rules, calls), calls);
  const view = run.value;
  const loosens = view ? view.changes.some((change) => change.loosens) || view.groups.some((group) => group.loosens) : false;
  const save = async () => {
    setBusy(true);
    const stored = await attempt(putRules(scope, rules, version));
    setBusy(false);
    if (stored) onSaved();
  };
  return (
    <Dialog title={t.reviewTitle} onClose={onClose} wide>
      <div class="admin permissions review">
        {run.problem && <ErrorLine>{run.problem}</ErrorLine>}
        {!view && !run.problem && <Spinner label={t.checking} />}
        {view && !run.problem && (
          <>
            {loosens && <p class="loosened row" role="status"><Icon name="alert" /> {t.loosensSome}</p>}
            <section class="part" aria-labelledby="rule-changes">
              <h3 id="rule-changes">{t.changes}</h3>
              {view.changes.length === 0 && <p class="muted">{t.noChanges}</p>}
              <ul class="plain">{view.changes.map((change) => <li key={`${change.is_added}${change.text}`}><Change change={change} /></li>)}</ul>
            </section>
            <section class="part" aria-labelledby="past-calls">
              <div class="row wrap">
                <h3 id="past-calls" class="grow">{t.pastCalls}</h3>
                <label class="row small">{t.calls}
                  <select class="input" value={calls} onChange={(event) => setCalls(Number(event.currentTarget.value))}>
                    {CALLS.map((count) => <option key={count} value={count} selected={count === calls}>{format.number(count)}</option>)}
                  </select>
                </label>
              </div>
              <p class="small muted">{t.dryRun}</p>
              <div aria-live="polite"><PastCalls view={view} /></div>
            </section>
          </>
        )}
      </div>
      <div class="row wrap end">
        <Button autoFocus onClick={onClose}>{t.keepEditing}</Button>
        <Button kind={loosens ? "danger" : "primary"} disabled={!view || Boolean(run.problem) || isBusy} onClick={() => void save()}>{t.save}</Button>
      </div>
    </Dialog>
  );
}

function Change({ change }: { change: RuleChangeView }) {
  const t = useTexts();
  return (
    <div class="change">
      <span class={change.is_added ? "sign added" : "sign removed"} aria-hidden="true">{change.is_added ? "+" : "−"}</span>
      <span class="visually-hidden">{change.is_added ? t.added : t.removed}</span>
      <code class="grow">{change.text}</code>
      {change.loosens && <Badge tone="warn" title={t.loosensHint}>{t.loosens}</Badge>}
      {change.is_idle && <Badge tone="warn" title={t.idleHint}>{t.idle}</Badge>}
    </div>
  );
}

function PastCalls({ view }: { view: DryRunView }) {
  const t = useTexts();
  const count = view.groups.reduce((sum, group) => sum + group.count, 0);
  const since = format.moment(view.since);
  return (
    <>
      <p>{view.calls === 0 ? t.noCalls : count === 0 ? t.unchanged(view.calls, since) : t.differ(view.calls, since, count)}</p>
      <ul class="plain groups">{view.groups.map((group) => <li key={`${group.tool} ${group.before} ${group.after}`}><Group group={group} /></li>)}</ul>
      {view.skipped > 0 && <p class="small muted">{t.skipped(view.skipped)}</p>}
      {view.hidden_below > 0 && <p class="small muted">{t.hidden(view.hidden_below)}</p>}
    </>
  );
}

function Group({ group }: { group: DryRunGroup }) {
  const t = useTexts();
  return (
    <>
      <div class="row wrap">
        <code class="tool">{group.tool}</code>
        <span>{t.count(group.count)}</span>
        <span class="row"><ActionBadge action={group.before} /><span class="small muted">{t.would}</span><ActionBadge action={group.after} /></span>
        {group.loosens && <Badge tone="warn" title={t.loosensHint}>{t.loosens}</Badge>}
        {group.private > 0 && <span class="small muted">{t.private(group.private)}</span>}
      </div>
      {group.examples.length > 0 && (
        <Disclosure summary={<span class="small">{t.examples(group.examples.length)}</span>}>
          <ul class="plain examples">
            {group.examples.map((example, at) => (
              <li key={at}>
                <p class="row wrap small">
                  <a href={hrefFor({ page: "session", session: example.session })}>{example.title || t.untitled}</a>
                  <span class="muted">{format.moment(example.at)}</span>
                  <span class="row muted">{t.recorded}<ActionBadge action={example.recorded} /></span>
                  {example.rule && <span class="row muted">{t.decidedBy}<RuleSource rule={example.rule.rule} /></span>}
                </p>
                <pre class="text small" tabIndex={0}>{example.arguments}</pre>
              </li>
            ))}
          </ul>
        </Disclosure>
      )}
    </>
  );
}
