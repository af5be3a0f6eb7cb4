// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  diff: "Changes",
  added: "added",
  removed: "removed",
}, {
  diff: "变更内容",
  added: "新增",
  removed: "删除",
});
