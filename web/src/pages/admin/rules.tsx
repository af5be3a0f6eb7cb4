/** Rules page of the administration: permission rules as a draft that is edited, explained, reviewed and saved as a whole. */
import { useCallback, useState } from "preact/hooks";
import type { AllRulesView, ExplainCall, ExplainView, RuleSettingsView, StoredRule, StoredRuleView, ToolRules } from "@everturn/client";
import { format } from "../../app/texts";
import { diff } from "../../tree/diff";
import { Badge, Button, Dialog, ErrorLine, Spinner } from "../../ui/components";
import { useFetch } from "../../app/useFetch";
import { fetchRules } from "../api";
import { ExplainForm } from "../explainForm";
import { RuleRow } from "../ruleRow";
import { Loaded } from "./parts";
import { explainDraft, fetchRuleVersions, fetchStoredRules, type RuleScope } from "./api";
import { cleanRule, type Draft, isSame, isStored, KeptDrafts, NEW_RULE, withMoved, withoutRule, withRule } from "./ruleDraft";
import { RuleEditor } from "./ruleEditor";
import { RuleReview } from "./ruleReview";
import "../permissions.css";
import "./rules.css";
import { useTexts } from "../../locales/adminRules.gen";

export function Rules() {
  const t = useTexts();
  const [scope, setScope] = useState<RuleScope>();
  const all = useFetch(() => fetchStoredRules(scope), scope);
  const tools = useFetch(() => fetchRules(""));
  return (
    <div class="permissions rules">
      <p class="muted">{t.about}</p>
      <Loaded of={all}>
        {(view) => view.is_editable && view.stored
          ? <Draftable key={`${view.scope} ${view.stored.version}`} view={view} stored={view.stored} tools={tools.value?.tools ?? []} reload={all.reload} onScope={setScope} />
          : <p class="card">{view.problem}</p>}
      </Loaded>
    </div>
  );
}

const scopeOf = (view: AllRulesView): RuleScope => view.scope ?? "installation";

/** Whose calls the rules on the page decide, and the choice where the caller may change both. */
function Scope({ view, isLocked, onChange }: { view: AllRulesView; isLocked: boolean; onChange: (scope: RuleScope) => void }) {
  const t = useTexts();
  const scopes = view.scopes ?? [];
  if (scopes.length < 2) return scopeOf(view) === "tenant" ? <p class="small muted">{t.tenantAbout}</p> : null;
  return (
    <div class="row wrap">
      <label class="row small">{t.scope}
        <select class="input" value={scopeOf(view)} disabled={isLocked} onChange={(event) => onChange(event.currentTarget.value as RuleScope)}>
          {scopes.map((scope) => <option key={scope} value={scope} selected={scope === view.scope}>{scope === "tenant" ? t.thisTenant : t.allTenants}{drafts.has(scope) ? ` (${t.changed})` : ""}</option>)}
        </select>
      </label>
      <span class="small muted">{view.scope === "tenant" ? t.tenantAbout : t.allAbout}</span>
    </div>
  );
}

interface Part { view: AllRulesView; stored: RuleSettingsView; tools: readonly ToolRules[]; reload: () => void; onScope: (scope: RuleScope) => void }

const drafts = new KeptDrafts();

function Draftable({ view, stored, tools, reload, onScope }: Part) {
  const t = useTexts();
  const before: Draft = stored.rules.map((row) => row.rule);
  const [draft, showDraft] = useState<Draft>(() => drafts.get(scopeOf(view), stored.version) ?? before);
  const setDraft = (changed: Draft) => { drafts.keep(scopeOf(view), stored.version, changed, before); showDraft(changed); };
  const [edited, setEdited] = useState<number | null>(null); // the length of the draft: a new one
  const [open, setOpen] = useState<"" | "review" | "versions">("");
  const isChanged = !isSame(draft, before);
  const isTenant = scopeOf(view) === "tenant";
  const put = (rule: StoredRule) => { setDraft(withRule(draft, edited ?? draft.length, rule)); setEdited(null); };
  const editor = (rule: StoredRule) => <RuleEditor rule={rule} tools={tools} onDone={put} onCancel={() => setEdited(null)} />;
  return (
    <>
      <Scope view={view} isLocked={edited !== null} onChange={onScope} />
      <header class="row wrap">
        <h2 class="grow">{t.stored} <span class="muted count">{draft.length}</span></h2>
        {stored.version > 0 && <Button icon="redo" onClick={() => setOpen("versions")}>{t.versions}</Button>}
        {edited === null && <Button icon="add" onClick={() => setEdited(draft.length)}>{t.add}</Button>}
      </header>
      <p class="small muted">{isTenant ? t.orderForTenant : t.order}</p>
      {stored.problem && <p class="card attention">{stored.problem}</p>}
      {draft.length === 0 && edited === null && <p class="card">{isTenant ? t.noneForTenant : t.none}</p>}
      <ol class="items list">
        {draft.map((rule, at) => (
          <li key={at}>
            {edited === at ? editor(rule) : <Item rule={rule} at={at} size={draft.length} stored={stored.rules} onEdit={() => setEdited(at)} isLocked={edited !== null}
              onChange={(changed) => setDraft(withRule(draft, at, changed))} onMove={(by) => setDraft(withMoved(draft, at, by))} onRemove={() => setDraft(withoutRule(draft, at))} />}
          </li>
        ))}
        {edited === draft.length && <li>{editor(NEW_RULE)}</li>}
      </ol>
      {isChanged && edited === null && (
        <div class="card unsaved row wrap" role="status">
          <span class="grow">{t.unsaved}</span>
          <Button onClick={() => setDraft(before)}>{t.discard}</Button>
          <Button kind="primary" onClick={() => setOpen("review")}>{t.review}</Button>
        </div>
      )}
      {stored.version > 0 && !isChanged && <p class="small muted"><Badge>{t.version(stored.version)}</Badge> {t.changedBy(stored.by, format.moment(stored.at))}</p>}
      {view.fixed && view.fixed.length > 0 && (
        <section class="part" aria-labelledby="fixed-rules">
          <h2 id="fixed-rules">{isTenant ? t.fixedForTenant : t.fixed} <span class="muted count">{view.fixed.length}</span></h2>
          <p class="small muted">{!isTenant ? t.fixedAbout : view.scopes?.includes("installation") ? t.fixedForOperator : t.fixedForTenantAbout}</p>
          <div class="card layer"><ul class="plain">{view.fixed.map((row, at) => <li key={at}><RuleRow view={row} /></li>)}</ul></div>
        </section>
      )}
      {tools.length > 0 && <Explain scope={scopeOf(view)} draft={draft} tools={tools} />}
      {open === "review" && <RuleReview scope={scopeOf(view)} draft={draft} version={stored.version} onSaved={reload} onClose={() => setOpen("")} />}
      {open === "versions" && <Versions scope={scopeOf(view)} onClose={() => setOpen("")} onRestore={(rules) => { setEdited(null); setDraft(rules); setOpen(isSame(rules, before) ? "" : "review"); }} />}
    </>
  );
}

function Item({ rule, at, size, stored, isLocked, onEdit, onChange, onMove, onRemove }: {
  rule: StoredRule; at: number; size: number; stored: readonly StoredRuleView[]; isLocked: boolean; onEdit: () => void; onChange: (rule: StoredRule) => void; onMove: (by: -1 | 1) => void; onRemove: () => void;
}) {
  const t = useTexts();
  const name = t.number(at + 1);
  const known = stored.find((row) => isSame([row.rule], [rule]));
  const isOff = rule.enabled === false;
  const view = { rule: { tool: rule.tool, action: rule.action, match: rule.match ?? {} }, text: "", shadow: known?.shadow ?? "", scope: "" as const };
  return (
    <div class="card item" data-off={isOff || undefined}>
      <div class="row wrap">
        <span class="place muted" title={name}>{at + 1}</span>
        <div class="grow"><RuleRow view={view} /></div>
        {isOff && <Badge>{t.off}</Badge>}
        {known?.is_idle && <Badge tone="warn" title={t.idleHint}>{t.idle}</Badge>}
        {!isStored(rule, stored.map((row) => row.rule)) && <Badge tone="accent">{t.changed}</Badge>}
      </div>
      {rule.note && <p class="small muted note" dir="auto">{rule.note}</p>}
      <div class="row wrap actions">
        <label class="row small grow"><input type="checkbox" checked={!isOff} disabled={isLocked} aria-label={`${t.enabled}: ${name}`} onChange={(event) => onChange(cleanRule({ ...rule, enabled: event.currentTarget.checked }))} /> {t.enabled}</label>
        <Button kind="quiet" little class="up" icon="chevron" aria-label={`${t.up}: ${name}`} disabled={isLocked || at === 0} onClick={() => onMove(-1)} />
        <Button kind="quiet" little class="down" icon="chevron" aria-label={`${t.down}: ${name}`} disabled={isLocked || at === size - 1} onClick={() => onMove(1)} />
        <Button kind="quiet" little icon="edit" aria-label={`${t.edit}: ${name}`} disabled={isLocked} onClick={onEdit} />
        <Button kind="quiet" little icon="trash" aria-label={`${t.remove}: ${name}`} disabled={isLocked} onClick={onRemove} />
      </div>
    </div>
  );
}

function Explain({ scope, draft, tools }: { scope: RuleScope; draft: Draft; tools: readonly ToolRules[] }) {
  const t = useTexts();
  const [shown, setShown] = useState<{ view: ExplainView; draft: Draft } | null>(null);
  const onExplained = useCallback((view: ExplainView | null) => setShown(view && { view, draft }), [draft]);
  const explain = useCallback(({ tool, arguments: args }: ExplainCall) => explainDraft(scope, { tool, arguments: args, rules: draft.map(cleanRule) }), [scope, draft]);
  return <ExplainForm agent="" tools={tools} grants={[]} about={t.explainAbout} explain={explain} explanation={shown?.draft === draft ? shown.view : null} onExplained={onExplained} />;
}

/** Rules as text, one per line, so that versions can be compared. */
const asText = (view: RuleSettingsView | undefined, off: string) =>
  (view?.rules ?? []).map(({ text, rule }) => [text, rule.enabled === false && `(${off})`, rule.note && `# ${rule.note}`].filter(Boolean).join("  ")).join("\n");

function Versions({ scope, onClose, onRestore }: { scope: RuleScope; onClose: () => void; onRestore: (rules: Draft) => void }) {
  const t = useTexts();
  const fetched = useFetch(() => fetchRuleVersions(scope));
  const versions = fetched.value?.versions;
  return (
    <Dialog title={t.versions} onClose={onClose} wide>
      <div class="admin">
        {fetched.problem && <ErrorLine>{fetched.problem}</ErrorLine>}
        {!versions && !fetched.problem && <Spinner label={t.loading} />}
        <ul class="items">
          {versions?.map((row, at) => (
            <li key={row.version}>
              <div class="row wrap">
                <Badge>{t.version(row.version)}</Badge>
                <span class="grow small muted">{t.changedBy(row.by, format.moment(row.at))}</span>
                {at > 0 && <Button little icon="redo" aria-label={`${t.restore}: ${t.version(row.version)}`} onClick={() => onRestore(row.rules.map(({ rule }) => rule))}>{t.restore}</Button>}
              </div>
              <pre class="text small" tabIndex={0}>
                {row.rules.length === 0 && !versions[at + 1]?.rules.length ? t.noRules : diff(asText(versions[at + 1], t.off), asText(row, t.off)).map((change, index) => change.kind === "added" ? <ins key={index}>{change.text}</ins> : change.kind === "removed" ? <del key={index}>{change.text}</del> : change.text)}
              </pre>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
