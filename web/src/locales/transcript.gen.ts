// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  log: "Conversation",
  newest: "Newest message",
  earlier: (count: number) => (count === 1 ? "1 earlier message…" : `${count} earlier messages…`),
  load: "Earlier messages",
}, {
  log: "对话",
  newest: "最新消息",
  earlier: (count: number) => (`更早的 ${count} 条消息…`),
  load: "更早的消息",
});
