// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  thinking: "Thinking…",
  thought: "Thought",
  sealed: "Thought (hidden by the provider)",
}, {
  thinking: "思考中…",
  thought: "思考过程",
  sealed: "思考过程（内容由模型提供商保密）",
});
