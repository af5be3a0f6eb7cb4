/** The models that answer the next message side by side, by session; "" is the new conversation. */
import { Store } from "../app/store";

const comparedBySession = new Store<ReadonlyMap<string, readonly string[]>>(new Map());

export const comparedModels = comparedBySession;

export function setComparedModels(session: string, models: readonly string[]): void {
  const all = new Map(comparedBySession.value);
  if (models.length > 1) all.set(session, models);
  else all.delete(session);
  comparedBySession.set(all);
}
