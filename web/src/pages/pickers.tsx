/** Agent and model pickers. */
import { useEffect, useState } from "preact/hooks";
import { path, type AgentView } from "@everturn/client";
import { agents, client, inbox, getSessionFollower } from "../app/app";
import { lazy } from "../app/lazy";
import { updateSettings, settings } from "../app/settings";
import { Store, useStore, useTopics } from "../app/store";
import { Button, Menu } from "../ui/components";
import { findAgent, effectiveChoice, modelsOf, type AgentChoice } from "./agentChoice";
import "./pickers.css";
import { useTexts } from "../locales/pickers.gen";

const ModelPicker = lazy(async () => (await import("./modelPicker")).ModelPicker, true);

/** Choices made since the page was loaded, by session. */
const pickedBySession = new Store<ReadonlyMap<string, AgentChoice>>(new Map());
/** Agents of sessions, as far as they are known. */
const sessionAgents = new Map<string, string>();

/** The agent and the model for the next message: "" is the server's default. */
export function currentChoice(session?: string): AgentChoice {
  const all = agents.value?.agents ?? [];
  if (!session) return effectiveChoice(all, { agent: settings.value.agent, model: settings.value.model });
  const picked = pickedBySession.value.get(session);
  return effectiveChoice(all, picked ?? lastChoice(session), sessionAgents.get(session));
}

/** Choose the agent or the model for the next messages. */
export function setChoice(changes: Partial<AgentChoice>, session?: string): void {
  const all = agents.value?.agents ?? [];
  const now = session ? { ...lastChoice(session), ...pickedBySession.value.get(session) } : { agent: settings.value.agent, model: settings.value.model };
  const next = { ...now, ...changes };
  const agent = findAgent(all, next.agent || (session && sessionAgents.get(session)) || "");
  if (agent && !modelsOf(agent).includes(next.model)) next.model = "";
  if (session) pickedBySession.set(new Map(pickedBySession.value).set(session, next));
  else updateSettings(next);
}

/** The agent and model of the last turn on the selected branch, so that a conversation continues with them. */
function lastChoice(session: string): AgentChoice {
  const { state } = getSessionFollower(session);
  const turn = state.turns.get(path(state).findLast((message) => message.turn)?.turn ?? "");
  return { agent: turn?.options.agent ?? "", model: turn?.options.model ?? "" };
}

/** The current agent, and its model. */
export function useCurrentChoice(session?: string): { agent: AgentView | undefined; model: string } {
  const all = useStore(agents)?.agents ?? [];
  useStore(settings);
  useStore(pickedBySession);
  const owner = useSessionAgentName(session);
  const { agent: name, model } = currentChoice(session);
  const agent = findAgent(all, name || owner);
  return { agent, model: model || (agent?.model ?? "") };
}

/** The agent that a session was started with: it is the one that answers a rerun. */
export function useSessionAgent(session: string): AgentView | undefined {
  const all = useStore(agents)?.agents ?? [];
  return findAgent(all, useSessionAgentName(session));
}

function useSessionAgentName(session?: string): string {
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!session || sessionAgents.has(session)) return;
    const known = inbox.sessions.get(session)?.agent;
    if (known) sessionAgents.set(session, known);
    else void client.session(session).then((view) => { sessionAgents.set(session, view.agent); redraw(1); }, () => {});
  }, [session]);
  return (session && sessionAgents.get(session)) || "";
}

export function AgentPicker({ session }: { session?: string }) {
  return session ? <SessionPickers session={session} /> : <Pickers />;
}

function SessionPickers({ session }: { session: string }) {
  useTopics(getSessionFollower(session), "tree"); // a new turn may be with another agent
  return <Pickers session={session} />;
}

function Pickers({ session }: { session?: string }) {
  const t = useTexts();
  const all = useStore(agents)?.agents ?? [];
  const { agent, model } = useCurrentChoice(session);
  if (!agent) return null;
  const models = modelsOf(agent);
  return (
    <div class="pickers">
      {all.length > 1 ? (
        <Menu up button={{ label: t.agent, text: <PickedLabel text={agent.name} /> }}
          items={all.map((candidate) => ({
            label: <AgentLabel name={candidate.name} about={candidate.description} />,
            isChecked: candidate.name === agent.name,
            onSelect: () => setChoice({ agent: candidate.name }, session),
          }))} />
      ) : null}
      {models.length > 1 ? (
        <ModelButton label={t.model} text={model} agent={agent} current={model} onSelect={(chosen) => setChoice({ model: chosen }, session)} />
      ) : (
        <span class="only small muted ellipsis" title={t.model}>{model}</span>
      )}
    </div>
  );
}

/** A button that opens the model picker: with a text, or with an icon alone. */
export function ModelButton({ label, text, agent, current, onSelect }: { label: string; text?: string; agent: AgentView; current: string; onSelect: (model: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="quiet" little class="model-button" icon={text ? undefined : "server"} aria-label={text ? undefined : label} title={label} aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {text && <PickedLabel text={text} />}
      </Button>
      {isOpen && <ModelPicker names={modelsOf(agent)} own={agent.model} current={current} onSelect={onSelect} onClose={() => setOpen(false)} />}
    </>
  );
}

function PickedLabel({ text }: { text: string }) {
  return <span class="picked ellipsis">{text}</span>;
}

function AgentLabel({ name, about }: { name: string; about: string }) {
  return (
    <span class="described">
      <span>{name}</span>
      {about && <span class="small muted">{about}</span>}
    </span>
  );
}
