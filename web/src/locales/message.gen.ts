// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  you: "You",
  by: (author: string | number) => `Message from ${author}`,
  answer: "Answer",
  notice: "Notice",
  all: "Show more",
  less: "Show less",
  empty: "No answer was written.",
}, {
  you: "您",
  by: (author: string | number) => `${author} 的消息`,
  answer: "回答",
  notice: "通知",
  all: "全部显示",
  less: "收起",
  empty: "没有写出回答。",
});
