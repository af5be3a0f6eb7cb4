// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Saved prompts",
  none: "No saved prompt matches.",
  manage: "Prompts and instructions",
  use: "Insert",
  cancel: "Cancel",
  empty: "You have no saved prompts yet.",
}, {
  title: "已保存的提示词",
  none: "没有匹配的提示词。",
  manage: "提示词与指令",
  use: "插入",
  cancel: "取消",
  empty: "您还没有保存的提示词。",
});
