/** Usage totals of messages, from their steps. */
import type { Message, Usage } from "@everturn/client";

export function usageOf(messages: readonly Message[]): Usage {
  const total = { input: 0, output: 0, cost: null as number | null };
  for (const message of messages) {
    for (const part of message.parts ?? []) {
      if (part.type !== "step" || !part.usage) continue;
      total.input += part.usage.input ?? 0;
      total.output += part.usage.output ?? 0;
      if (typeof part.usage.cost === "number") total.cost = (total.cost ?? 0) + part.usage.cost;
    }
  }
  return total;
}
