/** Parameters of conversations: those that a new conversation will have, and what the server knows of the others. */
import type { SessionParameters } from "@everturn/client";
import { client } from "../app/app";
import { Store } from "../app/store";

/** By session; "" is the new conversation. */
export const parametersBySession = new Store<ReadonlyMap<string, SessionParameters>>(new Map());

export const isDefault = (parameters: SessionParameters): boolean =>
  parameters.temperature == null && !parameters.max_tokens && !parameters.reasoning && !parameters.without_groups?.length;

export function rememberParameters(session: string, parameters: SessionParameters): void {
  parametersBySession.set(new Map(parametersBySession.value).set(session, parameters));
}

export async function fetchParameters(session: string): Promise<void> {
  if (session) rememberParameters(session, (await client.session(session)).parameters ?? {});
}

/** The parameters of the conversation that is started next, for its first message alone. */
export function takeNewParameters(): SessionParameters | null {
  const found = parametersBySession.value.get("") ?? {};
  return isDefault(found) ? null : found;
}
