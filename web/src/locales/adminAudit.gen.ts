// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  about: "Every change, newest first. Records hold ids, and no text of conversations.",
  by: "User",
  did: "Action",
  didHint: "for example key or session.erase",
  on: "Object",
  since: "From",
  until: "To",
  search: "Search",
  none: "No records match.",
  more: "Show older ones",
  at: "When",
  detail: "Details",
  number: "No.",
  table: "Audit records",
}, {
  about: "每次更改，最新的在前。记录只含 ID，不含对话文本。",
  by: "用户",
  did: "操作",
  didHint: "例如 key 或 session.erase",
  on: "对象",
  since: "从",
  until: "到",
  search: "搜索",
  none: "没有匹配的记录。",
  more: "显示更早的记录",
  at: "时间",
  detail: "详情",
  number: "编号",
  table: "审计记录",
});
