/** Empty state of a new installation: shows the onboarding while there is no model and it was not dismissed. */
import { agents } from "../app/app";
import { lazy } from "../app/lazy";
import { settings } from "../app/settings";
import { useStore } from "../app/store";
import { modelsOf, OFFLINE_MODEL } from "./agentChoice";

const Onboarding = lazy(async () => (await import("./onboarding")).Onboarding);

export function EmptyState() {
  const all = useStore(agents)?.agents;
  const { isWelcomed } = useStore(settings);
  const isDemo = all?.every((agent) => modelsOf(agent).every((model) => model === OFFLINE_MODEL));
  return isDemo && !isWelcomed ? <Onboarding /> : null;
}
