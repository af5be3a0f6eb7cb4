// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  failed: "This part could not be loaded.",
  again: "Try again",
  reload: "Reload the page",
}, {
  failed: "无法载入这一部分。",
  again: "重试",
  reload: "重新载入页面",
});
