// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  opening: "Opening the link",
  failed: "This link does not work",
  what: "It may have expired, or its author has revoked it. Ask the author for another one.",
  fresh: "Start a conversation",
}, {
  opening: "正在打开链接",
  failed: "此链接无效",
  what: "它可能已过期，或已被作者撤销。请向作者索取新的链接。",
  fresh: "开始新对话",
});
