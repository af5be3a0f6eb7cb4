/** Parameters of a conversation: temperature, length, reasoning, groups of tools, and its instructions. */
import { useEffect, useState } from "preact/hooks";
import type { AgentView, ModelView, SessionParameters, ToolView } from "@everturn/client";
import { agents, attempt, client, tools } from "../app/app";
import { useStore } from "../app/store";
import { fetchInstructions, writeInstructions } from "../pages/api";
import { useCurrentChoice } from "../pages/pickers";
import { Button, Dialog, Field, Spinner } from "../ui/components";
import { fetchParameters, parametersBySession, rememberParameters } from "./parameters";
import "./parameters.css";
import { useTexts } from "../locales/parameters.gen";

export function ParametersDialog({ session, onClose }: { session: string; onClose: () => void }) {
  const t = useTexts();
  const known = useStore(parametersBySession).get(session) ?? (session ? undefined : {});
  const [instructions, setInstructions] = useState<string | undefined>(session ? undefined : "");
  useEffect(() => {
    void attempt(fetchParameters(session));
    if (!tools.value) void attempt(client.tools()).then((found) => found && tools.set(found));
    if (session) void attempt(fetchInstructions(session)).then((found) => setInstructions(found?.layers.find((layer) => layer.layer === "session")?.text ?? ""));
  }, [session]);
  return (
    <Dialog title={t.title} onClose={onClose}>
      {known && instructions !== undefined ? <Form session={session} known={known} instructions={instructions} onClose={onClose} /> : <Spinner label={t.loading} />}
    </Dialog>
  );
}

function Form({ session, known, instructions: before, onClose }: { session: string; known: SessionParameters; instructions: string; onClose: () => void }) {
  const t = useTexts();
  const { agent, model: name } = useCurrentChoice(session || undefined);
  const model = useStore(agents)?.models?.find((candidate) => candidate.name === name);
  const groups = groupsOf(agent, useStore(tools)?.tools ?? []);
  const [temperature, setTemperature] = useState(known.temperature == null ? "" : String(known.temperature));
  const [length, setLength] = useState(known.max_tokens ? String(known.max_tokens) : "");
  const [reasoning, setReasoning] = useState(known.reasoning ?? "");
  const [without, setWithout] = useState<readonly string[]>(known.without_groups ?? []);
  const [instructions, setInstructions] = useState(before);
  const [isBusy, setBusy] = useState(false);
  const { levels, takesTemperature } = limitsOf(model);
  const save = async () => {
    const chosen: SessionParameters = {
      ...(temperature.trim() && { temperature: Number(temperature) }),
      ...(length.trim() && { max_tokens: Number(length) }),
      ...(reasoning && { reasoning }),
      ...(without.length && { without_groups: without }),
    };
    setBusy(true);
    const saved = !session || (await attempt(saveSession(session, chosen, instructions === before ? null : instructions)));
    setBusy(false);
    if (!saved) return;
    rememberParameters(session, chosen);
    onClose();
  };
  const reset = () => {
    setTemperature("");
    setLength("");
    setReasoning("");
    setWithout([]);
  };
  return (
    <form class="parameters" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <p class="small muted">{t.about}</p>
      <Field label={t.temperature} hint={takesTemperature ? t.temperature_hint : t.no_temperature(name)}>
        <input class="input" type="number" min={0} max={2} step={0.1} inputMode="decimal" placeholder={t.agent} disabled={!takesTemperature} value={takesTemperature ? temperature : ""} onInput={(event) => setTemperature(event.currentTarget.value)} />
      </Field>
      <Field label={t.length} hint={t.length_hint}>
        <input class="input" type="number" min={1} max={1_000_000} step={1} inputMode="numeric" placeholder={t.agent} value={length} onInput={(event) => setLength(event.currentTarget.value)} />
      </Field>
      <Field label={t.reasoning} hint={levels.length ? t.reasoning_hint : t.no_reasoning(name)}>
        <select class="input" disabled={!levels.length} value={levels.find((level) => level === reasoning) ?? ""} onChange={(event) => setReasoning(event.currentTarget.value as typeof reasoning)}>
          <option value="">{t.agent}</option>
          {levels.map((level) => <option key={level} value={level}>{t[level]}</option>)}
        </select>
      </Field>
      {groups.length > 0 && (
        <fieldset>
          <legend class="label">{t.tools}</legend>
          {groups.map((group) => (
            <label key={group} class="row">
              <input type="checkbox" checked={!without.includes(group)} onChange={(event) => setWithout(event.currentTarget.checked ? without.filter((other) => other !== group) : [...without, group])} />
              <span dir="auto">{group}</span>
            </label>
          ))}
          <p class="small muted">{t.tools_hint}</p>
        </fieldset>
      )}
      <Field label={t.instructions} hint={session ? t.instructions_hint : t.instructions_later}>
        <textarea class="input" rows={4} dir="auto" maxLength={16_000} disabled={!session} value={instructions} onInput={(event) => setInstructions(event.currentTarget.value)} />
      </Field>
      <div class="row wrap">
        <Button kind="primary" type="submit" disabled={isBusy}>{t.save}</Button>
        <Button kind="quiet" onClick={reset}>{t.reset}</Button>
      </div>
    </form>
  );
}

async function saveSession(session: string, parameters: SessionParameters, instructions: string | null): Promise<true> {
  await client.update(session, { parameters });
  if (instructions !== null) await writeInstructions("session", instructions, session);
  return true;
}

type Level = Exclude<NonNullable<SessionParameters["reasoning"]>, "">;
const LEVELS: readonly string[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] satisfies Level[];

/** What a model takes; of an unknown one, everything. */
function limitsOf(model: ModelView | undefined): { levels: Level[]; takesTemperature: boolean } {
  const levels = (model?.reasoning_levels ?? ["low", "medium", "high"]).filter((level): level is Level => LEVELS.includes(level));
  return { levels, takesTemperature: model?.has_temperature !== false };
}

/** The groups of tools that an agent has. */
function groupsOf(agent: AgentView | undefined, all: readonly ToolView[]): string[] {
  const own = agent?.tools;
  const found = all.filter(({ name, group }) => group && (!own || own.includes("*") || own.includes(name) || own.includes(`@${group}`)));
  return [...new Set(found.map((tool) => tool.group!))].sort();
}
