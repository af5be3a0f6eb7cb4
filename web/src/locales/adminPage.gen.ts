// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  again: "Try again",
  loading: "Loading…",
  fixed: "Fixed",
  setIn: (where: string | number) => `Set in ${where}`,
  sure: "Delete this?",
  no: "Cancel",
}, {
  again: "重试",
  loading: "加载中…",
  fixed: "固定",
  setIn: (where: string | number) => `设置于 ${where}`,
  sure: "确定删除？",
  no: "取消",
});
