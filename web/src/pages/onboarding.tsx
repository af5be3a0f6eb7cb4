/** Onboarding: sets up a model for a new installation, from a key or a local server that was found. */
import { useCallback, useState } from "preact/hooks";
import type { SetupView, ModelSource } from "@everturn/client";
import { agents, client, hasRole, toast } from "../app/app";
import { hrefFor } from "../app/route";
import { updateSettings } from "../app/settings";
import { Button, CopyButton, ErrorLine, Disclosure, Icon, Spinner } from "../ui/components";
import { useInterval, useFetch } from "../app/useFetch";
import { OFFLINE_MODEL } from "./agentChoice";
import { fetchSetup } from "./api";
import { withModel } from "./rules";
import "./onboarding.css";
import { useTexts } from "../locales/onboarding.gen";

const COMMAND = "OPENAI_API_KEY=… everturn serve --model openai:gpt-5.2";

export function Onboarding() {
  const t = useTexts();
  const isOperator = hasRole("operator");
  const fetched = useFetch(async () => (isOperator ? fetchSetup() : undefined), isOperator);
  const notice = useCallback(async () => {
    const found = await client.agents().catch(() => null);
    const model = found?.agents.find((agent) => agent.is_default)?.model ?? OFFLINE_MODEL;
    if (!found || model === OFFLINE_MODEL) return;
    agents.set(found);
    toast(t.done(model));
  }, [t]);
  useInterval(isOperator ? 3 : 0, notice);
  const dismiss = () => updateSettings({ isWelcomed: true });
  return (
    <section class="card onboarding" aria-labelledby="onboarding-title">
      <div class="row">
        <h2 id="onboarding-title" class="grow">{t.title}</h2>
        <Button kind="quiet" little icon="close" aria-label={t.close} onClick={dismiss} />
      </div>
      <p class="muted">{t.about}</p>
      {!isOperator && <p>{t.others}</p>}
      {isOperator && !fetched.value && !fetched.problem && <p class="row small muted"><Spinner /> {t.looking}</p>}
      {fetched.problem && <ErrorLine>{fetched.problem}</ErrorLine>}
      {hasRole("owner") && (
        <p class="row wrap">
          <span class="grow">{t.paste}</span>
          <a class="button primary" href={hrefFor({ page: "admin", section: "models" })}><Icon name="add" /> {t.toModels}</a>
        </p>
      )}
      {fetched.value && <SetupOptions view={fetched.value} />}
      <div class="row wrap">
        <Button onClick={dismiss}>{t.demo}</Button>
        {isOperator && <Button kind="quiet" icon="redo" onClick={fetched.reload}>{t.again}</Button>}
      </div>
    </section>
  );
}

function SetupOptions({ view }: { view: SetupView }) {
  const t = useTexts();
  if (view.options.length === 0)
    return (
      <div class="setup-options">
        <p>{t.none}</p>
        <ul class="hints">
          <li>{t.withKey} <Snippet text={COMMAND} /></li>
          <li>{t.withServer}</li>
        </ul>
      </div>
    );
  return <div class="setup-options">{view.options.map((option, index) => <SetupOption key={`${option.kind} ${option.name}`} option={option} view={view} isFirst={index === 0} />)}</div>;
}

function SetupOption({ option, view, isFirst }: { option: ModelSource; view: SetupView; isFirst: boolean }) {
  const t = useTexts();
  const first = option.models[0] ?? "";
  const [chosenModel, setChosenModel] = useState(first);
  const model = option.models.includes(chosenModel) ? chosenModel : first;
  const toml = model === first ? option.toml : withModel(option.toml, first, model);
  return (
    <Disclosure class="setup-option" open={isFirst} summary={<><Icon name={option.kind === "key" ? "lock" : "server"} /><span class="grow"><strong>{option.kind === "key" ? t.key(option.name) : t.server(option.name)}</strong> {option.address && <span class="small muted">{option.address}</span>}</span></>}>
      <div class="steps">
        {option.models.length > 1 && (
          <label class="row small">
            {t.model}
            <select class="input" value={model} onChange={(event) => setChosenModel(event.currentTarget.value)}>
              {option.models.map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
        )}
        <p class="small">{t.write(view.has_file, view.file)}</p>
        <Snippet text={toml} />
        <p class="small muted">
          {view.has_agent && <>{t.inTable(view.agent)} </>}
          {option.needs_restart ? t.restart : t.live}
          {option.kind === "key" && <> {t.example}</>}
        </p>
      </div>
    </Disclosure>
  );
}

function Snippet({ text }: { text: string }) {
  const t = useTexts();
  return <div class="snippet"><pre>{text}</pre><CopyButton text={text} label={t.copy} done={t.copied} /></div>;
}
