// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  create: "New conversation",
  menu: "Sessions and pages",
  skip: "Skip to the conversation",
  dismiss: "Dismiss",
  main: "Main",
}, {
  create: "新对话",
  menu: "对话与页面",
  skip: "跳到对话",
  dismiss: "关闭",
  main: "主要内容",
});
