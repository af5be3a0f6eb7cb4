/** Document title, and which gates are new. Pure. */
import type { GateView } from "@everturn/client";

/** The document title. */
export function documentTitle(count: number, name: string, app = "Everturn"): string {
  return `${count ? `(${count}) ` : ""}${app}${name ? ` · ${name}` : ""}`;
}

/** The gates for people that were not known yet; marks them as known. */
export function takeNewGates(gates: readonly GateView[], known: Set<string>): GateView[] {
  const found = gates.filter(({ gate }) => gate.kind !== "client" && !known.has(gate.id));
  for (const { gate } of found) known.add(gate.id);
  return found;
}
