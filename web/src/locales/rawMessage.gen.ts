// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Raw message",
  copy: "Copy",
  copied: "Copied",
}, {
  title: "原始消息",
  copy: "复制",
  copied: "已复制",
});
