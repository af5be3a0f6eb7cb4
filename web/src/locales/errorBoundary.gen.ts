// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  broken: "Something went wrong here.",
  again: "Try again",
  copy: "Copy details",
  copied: "The details are copied.",
}, {
  broken: "这一部分无法显示。",
  again: "重试",
  copy: "复制详情",
  copied: "详情已复制。",
});
