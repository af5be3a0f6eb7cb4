// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  never: (why: string | number) => `Never applies: ${why}`,
  decides: "decides",
  any: "any arguments",
  itself: "the tool itself",
  granted: "allowed by a person",
}, {
  never: (why: string | number) => `永远不会起作用：${why}`,
  decides: "起决定作用",
  any: "任意参数",
  itself: "工具自身",
  granted: "由人允许",
});
