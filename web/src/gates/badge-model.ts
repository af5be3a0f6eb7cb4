/** What the title of the page says, and which questions are news. Pure. */
import type { GateView } from "@everturn/client";

/** What the title of the page says. */
export function titleOf(count: number, name: string): string {
  return `${count ? `(${count}) ` : ""}Everturn${name ? ` · ${name}` : ""}`;
}

/** The ones of some gates that nobody was told of yet: those that are for people, and were not there before. */
export function fresh(gates: readonly GateView[], known: Set<string>): GateView[] {
  const found = gates.filter(({ gate }) => gate.kind !== "client" && !known.has(gate.id));
  for (const { gate } of found) known.add(gate.id);
  return found;
}
