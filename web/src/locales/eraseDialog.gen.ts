// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Erase this conversation?",
  what: "Everything in it is erased for everyone: all branches, files, tool results and sub-agent runs. A running turn is ended. This cannot be undone; export it first if you may need it.",
  yes: "Erase permanently",
  no: "Cancel",
  untitled: "Untitled conversation",
}, {
  title: "彻底删除这个对话？",
  what: "其中的一切都会为所有人删除：所有分支、文件、工具结果以及子任务。正在运行的轮次会被终止。此操作无法撤销；如有需要请先导出。",
  yes: "彻底删除",
  no: "保留",
  untitled: "未命名对话",
});
