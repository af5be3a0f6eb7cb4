/** Command of the command palette. */
import type { IconName } from "../ui/components";

export interface Command {
  id: string;
  text: string;
  icon: IconName;
  run: () => void;
}
