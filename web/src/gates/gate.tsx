/** A question to a person, where it is asked. */
import type { GateState } from "@everturn/client";
import type { ComponentType } from "preact";
import { lazy } from "../app/lazy";

export interface GateProps {
  /** The session that shows it; the gate itself says where it is asked. */
  session: string;
  asked: GateState;
  title?: string;
}

// A conversation in which nothing is asked does not need it.
export const GateCard: ComponentType<GateProps> = lazy(async () => (await import("./asked")).AskedGate);
