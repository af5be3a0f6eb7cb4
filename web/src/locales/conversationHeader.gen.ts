// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  untitled: "Conversation",
  share: "Share",
  exported: "Export",
  markdown: "Export as Markdown",
  json: "Export as JSON",
  archive: "Export with files (ZIP)",
  temporary: "Temporary",
  temporary_title: (when: string | number) => `In no list and in no search. It is erased at ${when}.`,
  read_only: "Read only",
  by: (author: string | number) => `Shared by ${author}`,
  by_link: "Shared by a link",
  shared: (n: number) => (n === 1 ? "Shared with 1" : `Shared with ${n}`),
  find: "Find in conversation",
  cost: "Cost of this conversation so far, with its sub-agents",
}, {
  untitled: "对话",
  share: "分享",
  exported: "导出",
  markdown: "导出为 Markdown",
  json: "导出为 JSON",
  archive: "连同文件导出（ZIP）",
  temporary: "临时",
  temporary_title: (when: string | number) => `不在列表和搜索中，将于 ${when} 清除。`,
  read_only: "只读",
  by: (author: string | number) => `由 ${author} 分享`,
  by_link: "通过链接分享",
  shared: (n: number) => (`已分享给 ${n} 个对象`),
  find: "在对话中查找",
  cost: "此对话至今的费用（含子智能体）",
});
