// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  copy: "Copy the code",
  copied: "Copied",
  wrap: "Wrap",
  wrapTitle: "Break long lines",
  code: "Code",
  preview: "Preview",
  save: "Download",
  fold: "Collapse the code",
  unfold: "Expand the code",
  lines: (count: number) => (count === 1 ? `${count} line` : `${count} lines`),
}, {
  copy: "复制代码",
  copied: "已复制",
  wrap: "换行",
  wrapTitle: "自动换行",
  code: "代码",
  preview: "预览",
  save: "下载",
  fold: "折叠代码",
  unfold: "展开代码",
  lines: (count: number) => `${count} 行`,
});
