// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  more: (count: number) => (count === 1 ? "1 more row is not shown; copying the table includes it." : `${count} more rows are not shown; copying the table includes them.`),
  table: "Table",
  copy: "Copy the table",
  copied: "Copied",
  save: "Download as CSV",
}, {
  more: (count: number) => (`另有 ${count} 行未显示；复制的文本中包含它们。`),
  table: "表格",
  copy: "复制表格",
  copied: "已复制",
  save: "下载表格",
});
