// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Page not found",
  text: "There is nothing at this address.",
  create: "New conversation",
  home: "Go to the start page",
}, {
  title: "找不到页面",
  text: "此地址没有内容。",
  create: "新对话",
  home: "前往首页",
});
