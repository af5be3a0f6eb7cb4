/** Texts of a gate. */
import { useTexts as useGateTexts } from "../locales/gates.gen";

export { useTexts as useGateTexts } from "../locales/gates.gen";

export type GateTexts = ReturnType<typeof useGateTexts>;
