/** Prompt picker: the saved prompts that match what was typed after `/`, and a form for the arguments of one of them. */
import { useState } from "preact/hooks";
import type { PromptView } from "@everturn/client";
import { useFetch } from "../app/useFetch";
import { fetchPrompts } from "../pages/api";
import { Button, ErrorLine, Field } from "../ui/components";
import { expandPrompt, matchPrompts, missingArguments, type Values } from "./expandPrompt";
import { showControls } from "./textEscapes";
import "./promptPicker.css";
import { useTexts } from "../locales/promptPicker.gen";

const SHOWN = 8;

/** `isCommand`: a command of the composer matches too, so prompts are only shown when one does. */
export function PromptPicker({ typed, isCommand, onPick }: { typed: string; isCommand?: boolean; onPick: (text: string) => void }) {
  const t = useTexts();
  const { value, problem } = useFetch(fetchPrompts);
  const [chosen, setChosen] = useState<PromptView | null>(null);
  const matching = matchPrompts(value?.prompts ?? [], typed);
  const pick = (prompt: PromptView) => (prompt.arguments.length ? setChosen(prompt) : onPick(prompt.text));
  if (chosen) return <Arguments prompt={chosen} onPick={onPick} onCancel={() => setChosen(null)} />;
  if (isCommand && !problem && !matching.length) return null;
  return (
    <div class="prompt-picker" role="group" aria-label={t.title}>
      {problem && <ErrorLine>{problem}</ErrorLine>}
      {matching.slice(0, SHOWN).map((prompt) => (
        <Button key={prompt.name} kind="quiet" onClick={() => pick(prompt)}>
          <code>/{prompt.name}</code> <span class="grow ellipsis muted" dir="auto">{showControls(prompt.description)}</span>
        </Button>
      ))}
      {value && matching.length === 0 && <span class="small muted">{value.prompts.length ? t.none : t.empty}</span>}
      <a class="small" href="#/prompts">{t.manage}</a>
    </div>
  );
}

/** Enter in a field inserts the text. The form stands in that of the composer, so it is no form of its own. */
function Arguments({ prompt, onPick, onCancel }: { prompt: PromptView; onPick: (text: string) => void; onCancel: () => void }) {
  const t = useTexts();
  const [values, setValues] = useState<Values>({});
  const isReady = missingArguments(prompt, values).length === 0;
  const insert = () => { if (isReady) onPick(expandPrompt(prompt, values)); };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.key !== "Enter") return;
    event.preventDefault();
    insert();
  };
  return (
    <div class="prompt-picker" role="group" aria-label={prompt.name} onKeyDown={onKeyDown}>
      {prompt.arguments.map(({ name, description, default: byDefault }, at) => (
        <Field key={name} label={name} hint={showControls(description ?? "")}>
          <input class="input" dir="auto" autoFocus={at === 0} placeholder={byDefault ?? ""} value={values[name] ?? ""}
            onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })} />
        </Field>
      ))}
      <div class="row wrap">
        <Button kind="primary" little disabled={!isReady} onClick={insert}>{t.use}</Button>
        <Button little onClick={onCancel}>{t.cancel}</Button>
      </div>
    </div>
  );
}
