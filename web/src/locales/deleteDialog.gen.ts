// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Delete this message?",
  alone: "The message is removed from the conversation for everyone, and no model reads it again.",
  more: (count: number) => `The message and ${count === 1 ? "1 more that follows it" : `${count} more that follow it`}, in all branches, are removed from the conversation for everyone, and no model reads them again.`,
  files: "Changed files stay as they are. To delete everything from the store, erase the whole conversation.",
  yes: "Delete",
  no: "Cancel",
}, {
  title: "删除这条消息？",
  alone: "它会从所有人的对话中移除，模型也不会再读到它。",
  more: (count: number) => `它以及其后所有分支中的 ${count} 条消息会从所有人的对话中移除，模型也不会再读到它们。`,
  files: "已更改的文件保持不变。若要从存储中清除一切，请彻底删除整个对话。",
  yes: "删除",
  no: "保留",
});
