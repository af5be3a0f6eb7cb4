/** An agent and a model, among those there are. */
import type { AgentView } from "@everturn/client";

/** "" is what the server takes by itself: the session's agent or the first one, and the agent's own model. */
export interface Choice {
  agent: string;
  model: string;
}

/** An agent by its name; without one, the default. */
export function agentNamed(all: readonly AgentView[], name: string): AgentView | undefined {
  return all.find((one) => one.name === name) ?? all.find((one) => one.is_default) ?? all[0];
}

/** The models that an agent may be answered by, its own first. */
export function modelsOf(agent: AgentView): string[] {
  return [...new Set([agent.model, ...(agent.models ?? [])])].filter(Boolean);
}

/** A wish as it may be sent: what is no more, or what the agent does not have, is left to the server. */
export function asSent(all: readonly AgentView[], wish: Choice, owner = ""): Choice {
  const agent = all.some((one) => one.name === wish.agent) ? wish.agent : "";
  const spoken = agentNamed(all, agent || owner);
  const model = spoken && wish.model !== spoken.model && modelsOf(spoken).includes(wish.model) ? wish.model : "";
  return { agent: agent === owner ? "" : agent, model };
}
