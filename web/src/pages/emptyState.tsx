/** Empty state of a new installation: shows the onboarding while there is no model and it was not dismissed. */
import { agents } from "../app/app";
import { lazy } from "../app/lazy";
import { settings } from "../app/settings";
import { useStore } from "../app/store";
import { OFFLINE_MODEL } from "./agentChoice";

const Onboarding = lazy(async () => (await import("./onboarding")).Onboarding);

export function EmptyState() {
  const first = useStore(agents)?.agents.find((agent) => agent.is_default);
  const { isWelcomed } = useStore(settings);
  return first?.model === OFFLINE_MODEL && !isWelcomed ? <Onboarding /> : null;
}
