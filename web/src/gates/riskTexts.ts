/** Texts of risk hints. */
import table from "../../../src/everturn/terminal/tui/gates/risk_table.json";
import { defineTexts } from "../app/texts";

export const useRiskTexts = defineTexts(table.en, table.zh);
