// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  none: "No results.",
  loading: "Searching",
  results: "Search results",
  untitled: "Untitled conversation",
  you: "you",
}, {
  none: "没有找到。",
  loading: "搜索中",
  results: "找到的消息",
  untitled: "未命名对话",
  you: "您",
});
