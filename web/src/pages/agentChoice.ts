/** Choice of agent and model. */
import type { AgentView } from "@everturn/client";

/** The model that answers while no other is set up. */
export const OFFLINE_MODEL = "offline:demo";

/** "" is the server's default: the session's agent or the first one, and the agent's own model. */
export interface AgentChoice {
  agent: string;
  model: string;
}

/** Find an agent by name; without one, the default. */
export function findAgent(all: readonly AgentView[], name: string): AgentView | undefined {
  return all.find((agent) => agent.name === name) ?? all.find((agent) => agent.is_default) ?? all[0];
}

/** The models of an agent, its default first. */
export function modelsOf(agent: AgentView): string[] {
  return [...new Set([agent.model, ...(agent.models ?? [])])].filter(Boolean);
}

/** The choice to send: an agent or model that is not available any more is left to the server. */
export function effectiveChoice(all: readonly AgentView[], choice: AgentChoice, owner = ""): AgentChoice {
  const agent = all.some((candidate) => candidate.name === choice.agent) ? choice.agent : "";
  const target = findAgent(all, agent || owner);
  const model = target && choice.model !== target.model && modelsOf(target).includes(choice.model) ? choice.model : "";
  return { agent: agent === owner ? "" : agent, model };
}
