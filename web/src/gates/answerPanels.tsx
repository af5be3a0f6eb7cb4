/** Answer panels of a gate: always allow, deny with a reason, edit arguments, manual result, form. */
import type { Gate, Rule } from "@everturn/client";
import { useMemo, useState } from "preact/hooks";
import { hasRole, tools } from "../app/app";
import { useStore } from "../app/store";
import { showInvisible } from "../conversation/textEscapes";
import { diff } from "../tools/diff";
import { Diff } from "../tools/diffView";
import { Button, Field } from "../ui/components";
import type { GateAnswer } from "./useAnswer";
import { TextBlock, TextWarnings } from "./visibleText";
import { SchemaForm } from "./schemaForm";
import { isExact, isObject, parseJson } from "./json";
import { formatRule } from "./ruleText";
import { validate, fieldOf, initialValue, type Schema } from "./schema";
import { useGateTexts } from "./texts";

interface PanelProps {
  readonly gate: Gate;
  readonly isReady: boolean;
  readonly onSend: (answer: GateAnswer) => void;
  readonly onBack: () => void;
}

export function AlwaysAllowPanel({ gate, isReady, onSend, onBack }: PanelProps) {
  const t = useGateTexts();
  const offers = gate.offers ?? [];
  const [rule, setRule] = useState<Rule | undefined>(offers[0]);
  const [where, setWhere] = useState<"here" | "user" | "folder" | "tenant">("here");
  const [seconds, setSeconds] = useState(0);
  return (
    <div class="panel">
      <p>{offers.length > 1 ? t.alwaysOne : t.alwaysTitle}</p>
      {offers.map((offer, index) => (
        <label class="offer" key={index}>
          {offers.length > 1 && <input type="radio" name={`rule-${gate.id}`} checked={rule === offer} onChange={() => setRule(offer)} />}
          <code>{formatRule(offer)}</code>
        </label>
      ))}
      {gate.kind === "loop" && <p class="small muted">{t.loopAlways}</p>}
      <div class="row wrap">
        <Field label={t.scope}>
          <select class="input" value={where} onChange={(event) => setWhere(event.currentTarget.value as typeof where)}>
            <option value="here">{t.here}</option>
            {hasRole("owner") && gate.folder && <option value="folder">{t.inFolder(showInvisible(gate.folder))}</option>}
            {hasRole("owner") && !gate.session_only && <option value="user">{t.everywhere}</option>}
            {hasRole("owner") && !gate.session_only && <option value="tenant">{t.everybody}</option>}
          </select>
        </Field>
        <Field label={t.how}>
          <select class="input" value={String(seconds)} onChange={(event) => setSeconds(Number(event.currentTarget.value))}>
            <option value="0">{t.forever}</option>
            <option value="3600">{t.hour}</option>
            <option value="86400">{t.day}</option>
            <option value="604800">{t.week}</option>
          </select>
        </Field>
      </div>
      <div class="row wrap">
        <Button kind="primary" icon="check" aria-disabled={!isReady} disabled={!rule}
          onClick={() => onSend({ allow: "always", rule, everywhere: where !== "here", ...(where !== "here" && { within: where }), until: seconds ? Math.floor(Date.now() / 1000) + seconds : 0 })}>{t.store}</Button>
        <Button kind="quiet" onClick={onBack}>{t.cancel}</Button>
      </div>
    </div>
  );
}

export function DenyPanel({ gate, isReady, onSend, onBack }: PanelProps) {
  const t = useGateTexts();
  const [reason, setReason] = useState("");
  const [others, setOthers] = useState(false);
  const isResult = gate.kind === "result"; // the call has run: what can be refused is to send its result
  const send = (stop = false) => onSend({ deny: reason.trim() || true, others, stop });
  return (
    <div class="panel">
      <Field label={t.reason} hint={t.reasonHint}>
        <textarea class="input" rows={2} maxLength={10_000} value={reason} ref={focusOnce} onInput={(event) => setReason(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229 && (event.preventDefault(), send())} />
      </Field>
      {hasRole("approver") && !isResult && (
        <label class="row small"><input type="checkbox" checked={others} onChange={(event) => setOthers(event.currentTarget.checked)} /> {t.others}</label>
      )}
      <div class="row wrap">
        <Button kind="danger" icon="close" aria-disabled={!isReady} onClick={() => send()}>{isResult ? t.withholdNow : t.denyNow}</Button>
        <Button kind="danger" icon="stop" aria-disabled={!isReady} onClick={() => send(true)}>{isResult ? t.withholdAndStop : t.denyAndStop}</Button>
        <Button kind="quiet" onClick={onBack}>{t.cancel}</Button>
      </div>
    </div>
  );
}

export function EditPanel({ gate, isReady, onSend, onBack }: PanelProps) {
  const t = useGateTexts();
  const known = useStore(tools);
  const first = useMemo(() => parseJson(gate.arguments), [gate.arguments]);
  const [value, setValue] = useState<unknown>(first);
  const schema = known?.tools.find((tool) => tool.name === gate.tool)?.schema ?? null;
  const errors = useMemo(() => (schema && value !== undefined ? validate(fieldOf(schema), value) : []), [schema, value]);
  if (!isExact(gate.arguments)) return <div class="panel"><p>{t.inexact}</p><Button kind="quiet" onClick={onBack}>{t.cancel}</Button></div>;
  const [before, after] = [JSON.stringify(first, null, 2), JSON.stringify(value, null, 2)];
  const isSame = before === after;
  const canSend = isObject(value) && !isSame && !errors.length;
  return (
    <div class="panel">
      <p>{t.editTitle}</p>
      <SchemaForm key={String(schema !== null)} schema={schema} value={value} onChange={setValue} errors={errors} />
      <p class="small label">{t.changes}</p>
      {isSame || after === undefined ? <p class="small muted">{t.unchanged}</p> : <Diff lines={diff(before, after)} />}
      {after !== undefined && <TextWarnings text={after} />}
      {gate.preview && !isSame && <p class="small warn">{t.previewEdited}</p>}
      <div class="row wrap">
        <Button kind="primary" icon="check" disabled={!canSend} aria-disabled={!canSend || !isReady} onClick={() => canSend && onSend({ allow: "once", arguments: value as Record<string, unknown> })}>{t.runEdited}</Button>
        <Button icon="revert" disabled={isSame} onClick={() => setValue(first)}>{t.reset}</Button>
        <Button kind="quiet" onClick={onBack}>{t.cancel}</Button>
      </div>
    </div>
  );
}

/** A result or an answer as text: for a manual call, or for a question. */
export function TextPanel({ isReady, onSend, onBack, isResult }: PanelProps & { isResult: boolean }) {
  const t = useGateTexts();
  const [text, setText] = useState("");
  const [failed, setFailed] = useState(false);
  return (
    <div class="panel">
      <Field label={isResult ? t.handTitle : t.answer}>
        <textarea class="input" rows={3} value={text} ref={focusOnce} onInput={(event) => setText(event.currentTarget.value)} />
      </Field>
      <TextWarnings text={text} />
      {isResult && <label class="row small"><input type="checkbox" checked={failed} onChange={(event) => setFailed(event.currentTarget.checked)} /> {t.failed}</label>}
      <div class="row wrap">
        <Button kind="primary" icon="check" aria-disabled={!isReady} disabled={!text.trim()} onClick={() => onSend({ result: text, failed })}>{isResult ? t.handSend : t.answerSend}</Button>
        <Button kind="quiet" onClick={onBack}>{t.cancel}</Button>
      </div>
    </div>
  );
}

/** The form of a running tool. */
export function FormPanel({ gate, isReady, onSend, onDeny }: { gate: Gate; isReady: boolean; onSend: (answer: GateAnswer) => void; onDeny: () => void }) {
  const t = useGateTexts();
  const schema = useMemo(() => (parseJson(gate.form ?? "") as Schema | undefined) ?? null, [gate.form]);
  const field = useMemo(() => fieldOf(schema ?? {}), [schema]);
  const [value, setValue] = useState<unknown>(() => initialValue(field));
  const [isTried, setTried] = useState(false);
  const errors = validate(field, value);
  const send = () => {
    if (errors.length || value === undefined) return setTried(true);
    onSend({ result: JSON.stringify(value) });
  };
  return (
    <div class="panel bare">
      <SchemaForm schema={schema} value={value} onChange={setValue} errors={isTried ? errors : []} />
      <div class="row wrap">
        <Button kind="primary" icon="check" aria-disabled={!isReady} onClick={send}>{t.answerSend}</Button>
        <Button kind="danger" onClick={onDeny}>{t.deny}</Button>
      </div>
    </div>
  );
}

export function QuestionText({ text }: { text: string }) {
  return (
    <>
      <TextBlock text={text} />
      <TextWarnings text={text} />
    </>
  );
}

function focusOnce(element: HTMLElement | null): void {
  if (!element || element.dataset["focused"]) return;
  element.dataset["focused"] = "yes";
  element.focus();
}
