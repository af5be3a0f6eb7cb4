/** Call states: icon, tone and texts of each. */
import type { CallState } from "@everturn/client";
import type { IconName, Tone } from "../ui/components";
import { useTexts as useCardTexts } from "../locales/toolStates.gen";

export const STATE_STYLE: Readonly<Record<CallState | "writing" | "never" | "still_running", readonly [IconName, Tone | undefined]>> = {
  writing: ["edit", undefined], pending: ["clock", undefined], never: ["clock", undefined], still_running: ["redo", "accent"], asking: ["lock", "warn"], running: ["redo", "accent"], waiting: ["wait", "accent"], reviewing: ["eye", "warn"],
  completed: ["check", "good"], failed: ["alert", "bad"], denied: ["close", "bad"], withheld: ["eye", "warn"], cancelled: ["stop", "warn"], outcome_unknown: ["alert", "warn"],
};

export { useTexts as useCardTexts } from "../locales/toolStates.gen";
export type CardTexts = ReturnType<typeof useCardTexts>;
