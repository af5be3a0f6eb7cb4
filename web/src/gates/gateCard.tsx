/** Gate card, lazily loaded. */
import type { ComponentType } from "preact";
import { lazy } from "../app/lazy";
import type { GateCardProps } from "./gateCardView";

// A conversation without gates does not load it.
export const GateCard: ComponentType<GateCardProps> = lazy(async () => (await import("./gateCardView")).GateCardView);
