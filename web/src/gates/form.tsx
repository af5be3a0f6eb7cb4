/** A form made from a JSON Schema, or JSON by hand where a form would not do. */
import { useRef, useState } from "preact/hooks";
import { words } from "../app/words";
import { Button, Field as Labelled } from "../ui/kit";
import { plain } from "./hidden";
import { isExact, isExactNumber, isObject, parse } from "./json";
import { BROKEN, fieldOf, initial, join, own as ownOf, type Field, type Schema, type Wrong } from "./schema";

const useWords = words(
  {
    json: "As JSON", form: "As a form", add: "Add one", remove: "Remove", none: "Not given", empty: "null", choose: "Choose …", optional: "optional",
    notJson: "This is not JSON yet, or has a number or a name that would not be kept.", yes: "Yes", asJson: "JSON",
    missing: "This is needed.", type: "This is of the wrong kind.", integer: "A whole number is needed.",
    least: (b: string) => `At least ${b}.`, most: (b: string) => `At most ${b}.`, short: (b: string) => `At least ${b} characters.`, long: (b: string) => `At most ${b} characters.`,
    pattern: (b: string) => `It must look like ${b}.`, few: (b: string) => `At least ${b} of them.`, many: (b: string) => `At most ${b} of them.`,
    choice: "One of the choices is needed.", extra: "The tool knows no such argument.",
  },
  {
    json: "以 JSON 编辑", form: "以表单编辑", add: "添加一项", remove: "移除", none: "不填", empty: "空值（null）", choose: "请选择…", optional: "可选",
    notJson: "这还不是有效的 JSON，或其中的数字或名称无法原样保留。", yes: "是", asJson: "JSON",
    missing: "此项必填。", type: "类型不对。", integer: "需要整数。",
    least: (b: string) => `不小于 ${b}。`, most: (b: string) => `不大于 ${b}。`, short: (b: string) => `至少 ${b} 个字符。`, long: (b: string) => `至多 ${b} 个字符。`,
    pattern: (b: string) => `须符合 ${b}。`, few: (b: string) => `至少 ${b} 项。`, many: (b: string) => `至多 ${b} 项。`,
    choice: "请从选项中选择。", extra: "该工具没有这个参数。",
  },
);

interface Put {
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** The whole of it. Where what is written is no JSON, or would be read as something else, its value is `BROKEN`. */
export function SchemaForm({ schema, value, onChange, wrong }: Put & { schema: Schema | null; wrong: readonly Wrong[] }) {
  const t = useWords();
  const field = schema ? fieldOf(schema) : null;
  const canForm = field !== null && field.kind !== "json";
  const [isJson, setJson] = useState(!canForm);
  return (
    <div class="schema-form">
      {canForm && (
        <Button little kind="quiet" class="switch" disabled={isJson && (value === undefined || value === BROKEN)} onClick={() => setJson(!isJson)}>
          {isJson ? t.form : t.json}
        </Button>
      )}
      {isJson || !field ? <JsonInput value={value} onChange={onChange} label={t.asJson} /> : <Control field={field} path="" value={value} onChange={onChange} wrong={wrong} />}
    </div>
  );
}

function Control({ field, path, value, onChange, wrong, label }: Put & { field: Field; path: string; wrong: readonly Wrong[]; label?: string }) {
  const t = useWords();
  const own = wrong.filter((one) => one.path === path && one.why !== "notJson"); // the field itself says that
  const name = label ?? plain(field.title);
  const trouble = own.length > 0 && <span class="trouble small">{own.map((one) => sayWrong(t, one)).join(" ")}</span>;
  switch (field.kind) {
    case "object": {
      const now = isObject(value) ? value : {};
      const extra = Object.keys(now).filter((one) => !field.fields.some((known) => known.name === one));
      const put = (key: string, to: unknown) => {
        const { [key]: _, ...rest } = now;
        // The order in which they were written is kept: a change changes one line.
        if (to === undefined) return onChange(rest);
        onChange(Object.hasOwn(now, key) ? Object.fromEntries(Object.entries(now).map(([k, v]) => [k, k === key ? to : v])) : { ...now, [key]: to });
      };
      return (
        <fieldset class={path ? "nested" : "top"}>
          {name && <legend>{name}</legend>}
          {field.about && path && <p class="small muted">{plain(field.about)}</p>}
          {trouble}
          {field.fields.map(({ name: key, field: one, isNeeded }) => (
            <Member key={key} name={key} field={one} isNeeded={isNeeded} path={join(path, key)} value={ownOf(now, key)} onChange={(to) => put(key, to)} wrong={wrong} />
          ))}
          {extra.map((key) => (
            <Labelled key={key} label={plain(key)}>
              <JsonInput value={now[key]} onChange={(to) => put(key, to)} label={plain(key)} />
              {wrong.filter((one) => one.path === join(path, key) && one.why !== "notJson").map((one) => <span class="trouble small">{sayWrong(t, one)}</span>)}
            </Labelled>
          ))}
        </fieldset>
      );
    }
    case "list": {
      const now = Array.isArray(value) ? (value as unknown[]) : [];
      return (
        <fieldset class="nested">
          {name && <legend>{name}</legend>}
          {field.about && <p class="small muted">{plain(field.about)}</p>}
          {trouble}
          {now.map((item, at) => (
            <div class="item row" key={at}>
              <div class="grow">
                <Control field={field.item!} path={join(path, String(at))} value={item} label={`${name} ${at + 1}`} wrong={wrong} onChange={(to) => onChange(now.with(at, to ?? null))} />
              </div>
              <Button little kind="quiet" icon="close" aria-label={`${t.remove}: ${name} ${at + 1}`} onClick={() => onChange(now.toSpliced(at, 1))} />
            </div>
          ))}
          <Button little icon="add" onClick={() => onChange([...now, initial(field.item!) ?? (field.item!.kind === "choice" ? field.item!.options[0]?.value : null)])}>{t.add}</Button>
        </fieldset>
      );
    }
    default:
      return (
        <Labelled label={name} hint={<>{trouble}{field.about && plain(field.about)}</>}>
          <Single field={field} value={value} onChange={onChange} label={name} isWrong={own.length > 0} />
        </Labelled>
      );
  }
}

function Member({ name, field, isNeeded, ...rest }: Put & { name: string; field: Field; isNeeded: boolean; path: string; wrong: readonly Wrong[] }) {
  const t = useWords();
  const label = plain(name) + (isNeeded ? "" : ` (${t.optional})`);
  const canMiss = !isNeeded || field.isNullable;
  const isThere = rest.value !== undefined && rest.value !== null;
  return (
    <div class="member">
      {isThere || !canMiss ? (
        <div class="row top">
          <div class="grow"><Control field={field} label={label} {...rest} /></div>
          {canMiss && isThere && (
            <Button little kind="quiet" icon="close" aria-label={`${t.none}: ${plain(name)}`} onClick={() => rest.onChange(isNeeded ? null : undefined)} />
          )}
        </div>
      ) : (
        <div class="row small">
          <span class="grow muted">{label}: {rest.value === null ? t.empty : t.none}</span>
          <Button little kind="quiet" icon="add" aria-label={`${t.add}: ${plain(name)}`} onClick={() => rest.onChange(start(field))} />
        </div>
      )}
    </div>
  );
}

/** Something to begin with, where nothing was given. */
function start(field: Field): unknown {
  const made = initial({ ...field, isNullable: false });
  if (made !== undefined && made !== null) return made;
  return field.kind === "choice" ? field.options[0]?.value : field.kind === "json" ? {} : 0;
}

function Single({ field, value, onChange, label, isWrong }: Put & { field: Field; label: string; isWrong: boolean }) {
  const t = useWords();
  if (field.kind === "boolean")
    return <span class="row"><input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} /> {t.yes}</span>;
  if (field.kind === "choice") {
    const at = field.options.findIndex((option) => JSON.stringify(option.value) === JSON.stringify(value));
    return (
      <select class="input" value={String(at)} aria-invalid={isWrong} onChange={(event) => onChange(field.options[Number(event.currentTarget.value)]?.value)}>
        {at < 0 && <option value="-1">{t.choose}</option>}
        {field.options.map((option, index) => <option key={index} value={String(index)}>{plain(option.label)}</option>)}
      </select>
    );
  }
  if (field.kind === "number" || field.kind === "integer") return <NumberInput value={value} onChange={onChange} isWrong={isWrong} />;
  if (field.kind === "json") return <JsonInput value={value} onChange={onChange} label={label} />;
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  const isLong = field.isLong || text.includes("\n") || text.length > 60;
  const rows = Math.min(14, Math.max(isLong ? 3 : 1, text.split("\n").length));
  return (
    <textarea class="input mono" rows={rows} value={text} spellcheck={false} dir="auto" aria-invalid={isWrong} onInput={(event) => onChange(event.currentTarget.value)} />
  );
}

function NumberInput({ value, onChange, isWrong }: Put & { isWrong: boolean }) {
  const [typed, setTyped] = useState<string | null>(null);
  const shown = typed ?? (value === undefined ? "" : String(value));
  const put = (text: string) => {
    setTyped(text);
    // Only what JSON calls a number, and what is kept to the last digit: anything else is of the wrong kind.
    onChange(text.trim() === "" ? undefined : isExactNumber(text.trim()) ? Number(text) : text);
  };
  return <input class="input mono" inputMode="decimal" value={shown} aria-invalid={isWrong} onInput={(event) => put(event.currentTarget.value)} onBlur={() => setTyped(null)} />;
}

export function JsonInput({ value, onChange, label }: Put & { label: string }) {
  const t = useWords();
  const [typed, setTyped] = useState("");
  const given = useRef<unknown>(undefined); // what the text that was typed stands for: another value was put there by others
  const isOurs = given.current !== undefined && given.current === value;
  const text = isOurs ? typed : value === undefined ? "" : JSON.stringify(value, null, 2);
  const put = (now: string) => {
    setTyped(now);
    const read = parse(now);
    given.current = read !== undefined && isExact(now) ? read : BROKEN;
    onChange(given.current);
  };
  return (
    <>
      <textarea class="input mono" rows={Math.min(18, Math.max(3, text.split("\n").length))} value={text} spellcheck={false} aria-label={label} aria-invalid={value === BROKEN}
        onInput={(event) => put(event.currentTarget.value)} />
      {value === BROKEN && <span class="trouble small">{t.notJson}</span>}
    </>
  );
}

function sayWrong(t: ReturnType<typeof useWords>, { why, bound }: Wrong): string {
  const text = t[why];
  return typeof text === "function" ? text(bound) : text;
}
