/** Editor of one permission rule: its action, its tool, patterns for arguments, and a note. */
import { useId, useState } from "preact/hooks";
import type { StoredRule, ToolRules } from "@everturn/client";
import { Button, Field } from "../../ui/components";
import { cleanRule } from "./ruleDraft";
import { useTexts } from "../../locales/adminRules.gen";

export function RuleEditor({ rule, tools, onDone, onCancel }: { rule: StoredRule; tools: readonly ToolRules[]; onDone: (rule: StoredRule) => void; onCancel: () => void }) {
  const t = useTexts();
  const id = useId();
  const [action, setAction] = useState(rule.action);
  const [tool, setTool] = useState(rule.tool);
  const [note, setNote] = useState(rule.note ?? "");
  const [pairs, setPairs] = useState(Object.entries(rule.match ?? {}));
  const known = Object.keys(tools.find((candidate) => candidate.name === tool.trim())?.subjects ?? {});
  const change = (at: number, pair: [string, string]) => setPairs(pairs.map((before, index) => (index === at ? pair : before)));
  const next = known.find((name) => !pairs.some(([used]) => used === name)) ?? "";
  const isComplete = tool.trim() !== "" && pairs.every(([name, pattern]) => name.trim() && pattern.trim()) && new Set(pairs.map(([name]) => name.trim())).size === pairs.length;
  return (
    <form class="card editor" onSubmit={(event) => { event.preventDefault(); onDone(cleanRule({ ...rule, action, tool, note, match: Object.fromEntries(pairs) })); }}>
      <div class="fields">
        <Field label={t.action}>
          <select class="input" value={action} onChange={(event) => setAction(event.currentTarget.value as StoredRule["action"])}>
            {(["deny", "ask", "allow"] as const).map((name) => <option key={name} value={name} selected={name === action}>{t[name]}</option>)}
          </select>
        </Field>
        <Field label={t.tool} hint={t.toolHint}>
          <input class="input" value={tool} required autoFocus maxLength={200} spellcheck={false} autocomplete="off" list={`${id}-tools`} onInput={(event) => setTool(event.currentTarget.value)} />
        </Field>
        <Field label={t.note} hint={t.noteHint}><input class="input" dir="auto" value={note} maxLength={500} onInput={(event) => setNote(event.currentTarget.value)} /></Field>
      </div>
      <datalist id={`${id}-tools`}>{tools.map(({ name }) => <option key={name} value={name} />)}</datalist>
      <datalist id={`${id}-arguments`}>{known.map((name) => <option key={name} value={name} />)}</datalist>
      {pairs.map(([name, pattern], at) => (
        <div class="pair" key={at}>
          <Field label={t.argument}><input class="input" value={name} required maxLength={200} spellcheck={false} autocomplete="off" list={`${id}-arguments`} onInput={(event) => change(at, [event.currentTarget.value, pattern])} /></Field>
          <Field label={t.pattern} hint={t.patternHint}><input class="input code" value={pattern} required maxLength={2000} spellcheck={false} autocomplete="off" onInput={(event) => change(at, [name, event.currentTarget.value])} /></Field>
          <Button kind="quiet" icon="close" aria-label={t.removeArgument(name || at + 1)} onClick={() => setPairs(pairs.filter((_, index) => index !== at))} />
        </div>
      ))}
      <div class="row wrap">
        <Button icon="add" disabled={pairs.length >= 20} onClick={() => setPairs([...pairs, [next, ""]])}>{t.addArgument}</Button>
        <span class="grow" />
        <Button onClick={onCancel}>{t.cancel}</Button>
        <Button kind="primary" type="submit" disabled={!isComplete}>{t.apply}</Button>
      </div>
    </form>
  );
}
