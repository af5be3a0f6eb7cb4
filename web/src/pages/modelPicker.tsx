/** Model picker: a dialog that searches the models of an agent, with their capabilities, context windows and prices. */
import { useEffect, useRef, useState } from "preact/hooks";
import { agents } from "../app/app";
import { useStore } from "../app/store";
import { format } from "../app/texts";
import { Badge, Button, Icon } from "../ui/components";
import { describeModels, searchModels, type ModelChoice } from "./modelSearch";
import "./commandPalette.css";
import "./modelPicker.css";
import { useTexts as useDialogTexts } from "../locales/components.gen";
import { useTexts } from "../locales/modelPicker.gen";

interface Props {
  names: readonly string[];
  own: string;
  current: string;
  onSelect?: (name: string) => void;
  /** The models that are compared: several are chosen then, two to four. */
  compared?: readonly string[];
  onCompare?: (names: readonly string[]) => void;
  onClose: () => void;
}

const MIN_COMPARED = 2;
const MAX_COMPARED = 4; // as on the server

export function ModelPicker({ names, own, current, onSelect, compared, onCompare, onClose }: Props) {
  const t = useTexts();
  const words = useCapabilityWords();
  const all = describeModels(names, useStore(agents)?.models ?? [], own);
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [index, setIndex] = useState(() => Math.max(0, names.indexOf(current)));
  const found = searchModels(all, typed, (model) => [model.name, model.vendor, model.badge, ...words(model)].filter(Boolean).join(" "));
  const [chosen, setChosen] = useState<readonly string[]>(compared ?? []);
  const isChosen = ({ name }: ModelChoice) => (compared ? chosen.includes(name) : name === current);
  const active = Math.min(index, found.length - 1);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => document.getElementById(`model-${active}`)?.scrollIntoView({ block: "nearest" }), [active, typed]);
  const pick = (model: ModelChoice | undefined) => {
    if (!model) return;
    if (compared) {
      if (chosen.includes(model.name)) setChosen(chosen.filter((name) => name !== model.name));
      else if (chosen.length < MAX_COMPARED) setChosen([...chosen, model.name]);
      return;
    }
    onSelect?.(model.name);
    dialog.current?.close();
  };
  const compare = () => {
    onCompare?.(chosen);
    dialog.current?.close();
  };
  const title = compared ? t.compare : t.title;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const count = found.length;
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: Math.min(active + 5, count - 1), PageUp: Math.max(active - 5, 0) }[event.key];
    if (to !== undefined && count) setIndex((to + count) % count);
    else if (event.key === "Enter") pick(found[active]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette model-picker" aria-label={title} onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <div class="typed">
        <Icon name="search" />
        <input autoFocus value={typed} placeholder={t.search} aria-label={t.search} role="combobox" aria-expanded="true" aria-controls="model-list"
          aria-autocomplete="list" aria-activedescendant={found.length ? `model-${active}` : undefined} autocomplete="off" spellcheck={false} maxLength={200}
          onInput={(event) => { setTyped(event.currentTarget.value); setIndex(0); }} onKeyDown={onKeyDown} />
        <Button kind="quiet" little icon="close" aria-label={useDialogTexts().close} onClick={() => dialog.current?.close()} />
      </div>
      <div id="model-list" class="list" role="listbox" aria-label={title} aria-multiselectable={compared ? true : undefined}>
        {found.map((model, number) => (
          <div key={model.name} id={`model-${number}`} class="option" role="option" aria-selected={number === active} aria-checked={compared ? isChosen(model) : undefined} onClick={() => pick(model)} onPointerMove={() => number === active || setIndex(number)}>
            <Icon name={isChosen(model) ? "check" : "server"} />
            <Facts model={model} words={words(model)} />
          </div>
        ))}
      </div>
      {!found.length && <p class="none small muted">{t.none}</p>}
      {compared && (
        <p class="compare row wrap">
          <span class="grow small muted" role="status">{t.chosen(chosen.length)} {t.limits(MIN_COMPARED, MAX_COMPARED)}</span>
          <Button kind="primary" little icon="compare" disabled={chosen.length < MIN_COMPARED} onClick={compare}>{t.apply}</Button>
        </p>
      )}
      <p class="note small muted">{t.note}</p>
      <p class="visually-hidden" role="status">{typed && t.count(found.length)}</p>
    </dialog>
  );
}

function Facts({ model, words }: { model: ModelChoice; words: readonly string[] }) {
  const t = useTexts();
  const { input_price: input, output_price: output } = model;
  return (
    <span class="grow">
      <span class="name">
        <span dir="auto">{model.name}</span>
        {model.isOwn && <Badge tone="accent">{t.own}</Badge>}
        {words.map((word) => <Badge key={word}>{word}</Badge>)}
      </span>
      <span class="facts small muted">
        {model.vendor && <span dir="auto">{model.vendor}</span>}
        {model.context ? <span>{t.context(format.tokens(model.context))}</span> : null}
        <span>{input == null || output == null ? t.unknown : t.prices(format.cost(input), format.cost(output))}</span>
      </span>
    </span>
  );
}

/** The capabilities of a model in the current language: what it accepts beside text, and how it calls tools. */
function useCapabilityWords(): (model: ModelChoice) => string[] {
  const t = useTexts();
  const named: Record<string, string> = { image: t.image, audio: t.audio, pdf: t.pdf };
  return ({ inputs, has_native_tools: native }) => [...(inputs ?? []).map((input) => named[input] ?? input), ...(native == null ? [] : [native ? t.tools : t.prompted])];
}
