// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  label: "Commands",
  typed: "Search or run a command",
  none: "No results",
  commands: "Commands",
  sessions: "Conversations",
  messages: "Messages",
  untitled: "Untitled conversation",
  count: (count: number) => (count === 1 ? "1 result" : `${count} results`),
}, {
  label: "命令",
  typed: "搜索对话和命令",
  none: "没有匹配项。",
  commands: "命令",
  sessions: "对话",
  messages: "消息",
  untitled: "未命名对话",
  count: (count: number) => (`${count} 个结果`),
});
