/** Whom one talks to: the agent and its model. */
import { useEffect, useState } from "preact/hooks";
import { path, type AgentView } from "@everturn/client";
import { agents, client, inbox, sessionOf } from "../app/app";
import { change, settings } from "../app/settings";
import { Store, useStore, useTopics } from "../app/store";
import { words } from "../app/words";
import { Menu } from "../ui/kit";
import { agentNamed, asSent, modelsOf, type Choice } from "./choice";
import "./pickers.css";

const useWords = words(
  { agent: "Agent", model: "Model", own: (model: string) => `${model} (the agent's own)` },
  { agent: "助手", model: "模型", own: (model: string) => `${model}（助手默认）` },
);

/** What was chosen in a session since the page was opened, by session. */
const picked = new Store<ReadonlyMap<string, Choice>>(new Map());
/** Agents of sessions, as far as they are known. */
const owners = new Map<string, string>();

/** The agent and the model for the next message: "" is what the server takes by itself. */
export function chosen(session?: string): Choice {
  const all = agents.value?.agents ?? [];
  if (!session) return asSent(all, { agent: settings.value.agent, model: settings.value.model });
  const here = picked.value.get(session);
  return asSent(all, here ?? last(session), owners.get(session));
}

/** Let the next messages go to another agent, or be answered by another model. */
export function choose(some: Partial<Choice>, session?: string): void {
  const all = agents.value?.agents ?? [];
  const now = session ? { ...last(session), ...picked.value.get(session) } : { agent: settings.value.agent, model: settings.value.model };
  const next = { ...now, ...some };
  const agent = agentNamed(all, next.agent || (session && owners.get(session)) || "");
  if (agent && !modelsOf(agent).includes(next.model)) next.model = "";
  if (session) picked.set(new Map(picked.value).set(session, next));
  else change(next);
}

/** What the selected branch was last answered with, so that a conversation goes on as it was. */
function last(session: string): Choice {
  const { state } = sessionOf(session);
  const turn = state.turns.get(path(state).findLast((message) => message.turn)?.turn ?? "");
  return { agent: turn?.options.agent ?? "", model: turn?.options.model ?? "" };
}

/** The agent that is spoken to now, and its model. */
export function useChosen(session?: string): { agent: AgentView | undefined; model: string } {
  const all = useStore(agents)?.agents ?? [];
  useStore(settings);
  useStore(picked);
  const owner = useOwner(session);
  const { agent: name, model } = chosen(session);
  const agent = agentNamed(all, name || owner);
  return { agent, model: model || (agent?.model ?? "") };
}

/** The agent that a session was begun with: it is the one that answers again. */
export function useOwnAgent(session: string): AgentView | undefined {
  const all = useStore(agents)?.agents ?? [];
  return agentNamed(all, useOwner(session));
}

function useOwner(session?: string): string {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!session || owners.has(session)) return;
    const known = inbox.sessions.get(session)?.agent;
    if (known) owners.set(session, known);
    else void client.session(session).then((view) => { owners.set(session, view.agent); redraw(1); }, () => {});
  }, [session]);
  return (session && owners.get(session)) || "";
}

export function AgentPicker({ session }: { session?: string }) {
  return session ? <Within session={session} /> : <Pickers />;
}

function Within({ session }: { session: string }) {
  useTopics(sessionOf(session), "tree"); // a new turn may be with another
  return <Pickers session={session} />;
}

function Pickers({ session }: { session?: string }) {
  const t = useWords();
  const all = useStore(agents)?.agents ?? [];
  const { agent, model } = useChosen(session);
  if (!agent) return null;
  const models = modelsOf(agent);
  return (
    <div class="pickers">
      {all.length > 1 ? (
        <Menu up button={{ label: t.agent, text: <Picked text={agent.name} /> }}
          items={all.map((one) => ({
            label: <Described name={one.name} about={one.description} />,
            isChecked: one.name === agent.name,
            onSelect: () => choose({ agent: one.name }, session),
          }))} />
      ) : null}
      {models.length > 1 ? (
        <Menu up button={{ label: t.model, text: <Picked text={model} /> }}
          items={models.map((one) => ({
            label: one === agent.model ? t.own(one) : one,
            isChecked: one === model,
            onSelect: () => choose({ model: one }, session),
          }))} />
      ) : (
        <span class="only small muted ellipsis" title={t.model}>{model}</span>
      )}
    </div>
  );
}

function Picked({ text }: { text: string }) {
  return <span class="picked ellipsis">{text}</span>;
}

function Described({ name, about }: { name: string; about: string }) {
  return (
    <span class="described">
      <span>{name}</span>
      {about && <span class="small muted">{about}</span>}
    </span>
  );
}
