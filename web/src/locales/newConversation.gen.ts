// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  hello: "What can I help with?",
  read: "Read-only access",
  viewer: "You can read the conversations in the list, but not start one.",
  try: "Something to try",
  demoTime: "What time is it?",
  demoNote: "Take a note: lunch with Ada on Friday.",
  one: "Invite Ada and Grace to lunch on Friday, outside if it is sunny.",
  two: "What tools do you have, and what would you ask me before you use them?",
  three: "Explain step by step how you would find a slow query.",
  temporary: "Temporary chat",
  temporary_about: "Not listed, not searchable, and erased after a day.",
}, {
  hello: "有什么可以帮您？",
  read: "只读访问",
  viewer: "您可以阅读列表中的对话，但不能开始新对话。",
  try: "可以试试",
  demoTime: "What time is it?（现在几点？）",
  demoNote: "Take a note: 周五与 Ada 共进午餐。",
  one: "邀请 Ada 和 Grace 周五共进午餐，天晴就在户外。",
  two: "您有哪些工具？使用前会先问我什么？",
  three: "请逐步说明如何找出一个慢查询。",
  temporary: "临时对话",
  temporary_about: "不出现在列表和搜索中，一天后清除。",
});
