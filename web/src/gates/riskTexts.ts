/** Texts of risk hints. */
export { useTexts as useRiskTexts } from "../locales/risks.gen";
