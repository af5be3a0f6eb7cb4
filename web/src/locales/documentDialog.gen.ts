// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  unread: (problem: string | number) => `Not all of it was read: ${problem}`,
  empty: "There is no text in this file.",
  cut: "The rest of the text is not shown here. Download the file to read it.",
  page: (n: string | number) => `Page ${n}`,
  slide: (n: string | number) => `Slide ${n}`,
  sheet: (n: string | number) => `Sheet ${n}`,
}, {
  unread: (problem: string | number) => `未能读取全部内容：${problem}`,
  empty: "此文件中没有文本。",
  cut: "其余文本未显示。请下载文件后阅读。",
  page: (n: string | number) => `第 ${n} 页`,
  slide: (n: string | number) => `第 ${n} 张幻灯片`,
  sheet: (n: string | number) => `工作表 ${n}`,
});
