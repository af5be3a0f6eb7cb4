/** Form generated from a JSON Schema, with a JSON editor where a form is not possible. */
import { useRef, useState } from "preact/hooks";
import { Button, Field as LabelledField } from "../ui/components";
import { escapeInvisible } from "./invisibleChars";
import { isExact, isExactNumber, isObject, parseJson } from "./json";
import { INVALID_JSON, fieldOf, initialValue, joinPath, ownProperty, type Field, type Schema, type FieldError } from "./schema";
import { useTexts } from "../locales/schemaForm.gen";

interface InputProps {
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** The whole form. The value is `INVALID_JSON` while the text is not valid JSON, or would be read as something else. */
export function SchemaForm({ schema, value, onChange, errors }: InputProps & { schema: Schema | null; errors: readonly FieldError[] }) {
  const t = useTexts();
  const field = schema ? fieldOf(schema) : null;
  const canForm = field !== null && field.kind !== "json";
  const [isJson, setJson] = useState(!canForm);
  return (
    <div class="schema-form">
      {canForm && (
        <Button little kind="quiet" class="switch" disabled={isJson && (value === undefined || value === INVALID_JSON)} onClick={() => setJson(!isJson)}>
          {isJson ? t.form : t.json}
        </Button>
      )}
      {isJson || !field ? <JsonInput value={value} onChange={onChange} label={t.asJson} /> : <FieldInput field={field} path="" value={value} onChange={onChange} errors={errors} />}
    </div>
  );
}

function FieldInput({ field, path, value, onChange, errors, label }: InputProps & { field: Field; path: string; errors: readonly FieldError[]; label?: string }) {
  const t = useTexts();
  const ownErrors = errors.filter((error) => error.path === path && error.reason !== "notJson"); // the field itself shows that
  const name = label ?? escapeInvisible(field.title);
  const errorLine = ownErrors.length > 0 && <span class="trouble small">{ownErrors.map((error) => fieldErrorText(t, error)).join(" ")}</span>;
  switch (field.kind) {
    case "object": {
      const now = isObject(value) ? value : {};
      const extra = Object.keys(now).filter((key) => !field.fields.some((known) => known.name === key));
      const setMember = (key: string, to: unknown) => {
        const { [key]: _, ...rest } = now;
        // Keep the order of the members: a change changes one line.
        if (to === undefined) return onChange(rest);
        onChange(Object.hasOwn(now, key) ? Object.fromEntries(Object.entries(now).map(([k, v]) => [k, k === key ? to : v])) : { ...now, [key]: to });
      };
      return (
        <fieldset class={path ? "nested" : "top"}>
          {name && <legend>{name}</legend>}
          {field.about && path && <p class="small muted">{escapeInvisible(field.about)}</p>}
          {errorLine}
          {field.fields.map(({ name: key, field: member, isNeeded }) => (
            <MemberInput key={key} name={key} field={member} isNeeded={isNeeded} path={joinPath(path, key)} value={ownProperty(now, key)} onChange={(to) => setMember(key, to)} errors={errors} />
          ))}
          {extra.map((key) => (
            <LabelledField key={key} label={escapeInvisible(key)}>
              <JsonInput value={now[key]} onChange={(to) => setMember(key, to)} label={escapeInvisible(key)} />
              {errors.filter((error) => error.path === joinPath(path, key) && error.reason !== "notJson").map((error) => <span class="trouble small">{fieldErrorText(t, error)}</span>)}
            </LabelledField>
          ))}
        </fieldset>
      );
    }
    case "list": {
      const now = Array.isArray(value) ? (value as unknown[]) : [];
      return (
        <fieldset class="nested">
          {name && <legend>{name}</legend>}
          {field.about && <p class="small muted">{escapeInvisible(field.about)}</p>}
          {errorLine}
          {now.map((item, index) => (
            <div class="item row" key={index}>
              <div class="grow">
                <FieldInput field={field.item!} path={joinPath(path, String(index))} value={item} label={`${name} ${index + 1}`} errors={errors} onChange={(to) => onChange(now.with(index, to ?? null))} />
              </div>
              <Button little kind="quiet" icon="close" aria-label={`${t.remove}: ${name} ${index + 1}`} onClick={() => onChange(now.toSpliced(index, 1))} />
            </div>
          ))}
          <Button little icon="add" onClick={() => onChange([...now, initialValue(field.item!) ?? (field.item!.kind === "choice" ? field.item!.options[0]?.value : null)])}>{t.add}</Button>
        </fieldset>
      );
    }
    default:
      return (
        <LabelledField label={name} hint={<>{errorLine}{field.about && escapeInvisible(field.about)}</>}>
          <ScalarInput field={field} value={value} onChange={onChange} label={name} isInvalid={ownErrors.length > 0} />
        </LabelledField>
      );
  }
}

function MemberInput({ name, field, isNeeded, ...rest }: InputProps & { name: string; field: Field; isNeeded: boolean; path: string; errors: readonly FieldError[] }) {
  const t = useTexts();
  const label = escapeInvisible(name) + (isNeeded ? "" : ` (${t.optional})`);
  const canMiss = !isNeeded || field.isNullable;
  const isPresent = rest.value !== undefined && rest.value !== null;
  return (
    <div class="member">
      {isPresent || !canMiss ? (
        <div class="row top">
          <div class="grow"><FieldInput field={field} label={label} {...rest} /></div>
          {canMiss && isPresent && (
            <Button little kind="quiet" icon="close" aria-label={`${t.none}: ${escapeInvisible(name)}`} onClick={() => rest.onChange(isNeeded ? null : undefined)} />
          )}
        </div>
      ) : (
        <div class="row small">
          <span class="grow muted">{label}: {rest.value === null ? t.empty : t.none}</span>
          <Button little kind="quiet" icon="add" aria-label={`${t.add}: ${escapeInvisible(name)}`} onClick={() => rest.onChange(startValue(field))} />
        </div>
      )}
    </div>
  );
}

/** The value of an optional field when it is added. */
function startValue(field: Field): unknown {
  const start = initialValue({ ...field, isNullable: false });
  if (start !== undefined && start !== null) return start;
  return field.kind === "choice" ? field.options[0]?.value : field.kind === "json" ? {} : 0;
}

function ScalarInput({ field, value, onChange, label, isInvalid }: InputProps & { field: Field; label: string; isInvalid: boolean }) {
  const t = useTexts();
  if (field.kind === "boolean")
    return <span class="row"><input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} /> {t.yes}</span>;
  if (field.kind === "choice") {
    const selected = field.options.findIndex((option) => JSON.stringify(option.value) === JSON.stringify(value));
    return (
      <select class="input" value={String(selected)} aria-invalid={isInvalid} onChange={(event) => onChange(field.options[Number(event.currentTarget.value)]?.value)}>
        {selected < 0 && <option value="-1">{t.choose}</option>}
        {field.options.map((option, index) => <option key={index} value={String(index)}>{escapeInvisible(option.label)}</option>)}
      </select>
    );
  }
  if (field.kind === "number" || field.kind === "integer") return <NumberInput value={value} onChange={onChange} isInvalid={isInvalid} />;
  if (field.kind === "json") return <JsonInput value={value} onChange={onChange} label={label} />;
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  const isLong = field.isLong || text.includes("\n") || text.length > 60;
  const rows = Math.min(14, Math.max(isLong ? 3 : 1, text.split("\n").length));
  return (
    <textarea class="input mono" rows={rows} value={text} spellcheck={false} dir="auto" aria-invalid={isInvalid} onInput={(event) => onChange(event.currentTarget.value)} />
  );
}

function NumberInput({ value, onChange, isInvalid }: InputProps & { isInvalid: boolean }) {
  const [typed, setTyped] = useState<string | null>(null);
  const shown = typed ?? (value === undefined ? "" : String(value));
  const setValue = (text: string) => {
    setTyped(text);
    // Only exact JSON numbers: anything else fails validation as the wrong type.
    onChange(text.trim() === "" ? undefined : isExactNumber(text.trim()) ? Number(text) : text);
  };
  return <input class="input mono" inputMode="decimal" value={shown} aria-invalid={isInvalid} onInput={(event) => setValue(event.currentTarget.value)} onBlur={() => setTyped(null)} />;
}

export function JsonInput({ value, onChange, label }: InputProps & { label: string }) {
  const t = useTexts();
  const [typed, setTyped] = useState("");
  const typedValue = useRef<unknown>(undefined); // the value of the typed text: another value was set from outside
  const isTyped = typedValue.current !== undefined && typedValue.current === value;
  const text = isTyped ? typed : value === undefined ? "" : JSON.stringify(value, null, 2);
  const setValue = (now: string) => {
    setTyped(now);
    const parsed = parseJson(now);
    typedValue.current = parsed !== undefined && isExact(now) ? parsed : INVALID_JSON;
    onChange(typedValue.current);
  };
  return (
    <>
      <textarea class="input mono" rows={Math.min(18, Math.max(3, text.split("\n").length))} value={text} spellcheck={false} aria-label={label} aria-invalid={value === INVALID_JSON}
        onInput={(event) => setValue(event.currentTarget.value)} />
      {value === INVALID_JSON && <span class="trouble small">{t.notJson}</span>}
    </>
  );
}

function fieldErrorText(t: ReturnType<typeof useTexts>, { reason, bound }: FieldError): string {
  const text = t[reason];
  return typeof text === "function" ? text(bound) : text;
}
