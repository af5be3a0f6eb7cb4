// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  agent: "Agent",
  model: "Model",
}, {
  agent: "助手",
  model: "模型",
});
