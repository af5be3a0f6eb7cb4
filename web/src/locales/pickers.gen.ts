// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  agent: "Agent",
  model: "Model",
}, {
  agent: "智能体",
  model: "模型",
});
