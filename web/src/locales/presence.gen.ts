// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  conversation: (count: number, names: string | number) => (count === 1 ? `${names} is looking at this conversation` : `${names} are looking at this conversation`),
  gate: (count: number, names: string | number) => (count === 1 ? `${names} is looking at this.` : `${names} are looking at this.`),
  administrator: (name: string | number) => `${name} (administrator)`,
}, {
  conversation: (count: number, names: string | number) => `${names}（${count} 人）正在查看此对话`,
  gate: (count: number, names: string | number) => `${names}（${count} 人）正在查看此项。`,
  administrator: (name: string | number) => `${name}（管理员）`,
});
