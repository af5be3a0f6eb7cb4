// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  label: "Find in conversation",
  count: (at: string | number, all: string | number) => `${at} of ${all}`,
  none: "No matches",
  loading: "Loading…",
  previous: "Previous match",
  next: "Next match",
  close: "Close search",
}, {
  label: "在对话中查找",
  count: (at: string | number, all: string | number) => `第 ${at} 个，共 ${all} 个`,
  none: "没有匹配项",
  loading: "正在加载…",
  previous: "上一个匹配项",
  next: "下一个匹配项",
  close: "关闭查找",
});
