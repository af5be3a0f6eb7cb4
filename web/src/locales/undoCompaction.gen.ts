// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Undo this compaction?",
  whole: "The model reads the whole conversation again.",
  branch: (count: number) => `The conversation continues from the message above it, where the model reads everything. The ${count === 1 ? "message" : `${count} messages`} below it ${count === 1 ? "stays" : "stay"} on another branch.`,
  undo: "Undo",
  cancel: "Cancel",
}, {
  title: "撤销此次压缩？",
  whole: "模型将重新读取整个对话。",
  branch: (count: number) => `对话将从压缩之前的消息继续，模型会读到全部内容。其后的 ${count} 条消息保留在另一个分支中。`,
  undo: "撤销",
  cancel: "取消",
});
