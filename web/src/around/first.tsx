/** What a new installation says on its first page; nothing once there is a model, or somebody does not want to hear it. */
import { agents } from "../app/app";
import { lazy } from "../app/lazy";
import { settings } from "../app/settings";
import { useStore } from "../app/store";

/** The name of the model that answers where there is no other. */
export const OFFLINE = "offline:demo";

const Welcome = lazy(async () => (await import("./welcome")).Welcome);

export function FirstRun() {
  const first = useStore(agents)?.agents.find((one) => one.is_default);
  const { isWelcomed } = useStore(settings);
  return first?.model === OFFLINE && !isWelcomed ? <Welcome /> : null;
}
