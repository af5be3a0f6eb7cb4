/** Gate card and gate batch, lazily loaded. */
import type { ComponentType } from "preact";
import { lazy } from "../app/lazy";
import type { GateCardProps } from "./gateCardView";

// A conversation without gates does not load them.
export const GateCard: ComponentType<GateCardProps> = lazy(async () => (await import("./gateCardView")).GateCardView);
export const GateBatch = lazy(async () => (await import("./gateBatch")).GateBatch, true);
