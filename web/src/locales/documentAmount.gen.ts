// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  pages: (n: number) => (n === 1 ? "1 page" : `${n} pages`),
  slides: (n: number) => (n === 1 ? "1 slide" : `${n} slides`),
  sheets: (n: number) => (n === 1 ? "1 sheet" : `${n} sheets`),
}, {
  pages: (n: number) => (`${n} 页`),
  slides: (n: number) => (`${n} 张幻灯片`),
  sheets: (n: number) => (`${n} 个工作表`),
});
