// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  untitled: "Untitled conversation",
  none: "No conversations yet.",
  failed: "The conversations could not be loaded.",
  again: "Try again",
  running: "running",
  waits: "needs your answer",
  quarantined: "quarantined",
  more: "More about this conversation",
  list: "Conversations",
  exported: "Export",
  compact: "Compact conversation…",
  erase: "Erase…",
  loading: "Loading",
  now: "now",
}, {
  untitled: "未命名对话",
  none: "还没有对话。",
  failed: "无法读取列表。",
  again: "重试",
  running: "运行中",
  waits: "等待答复",
  quarantined: "卡住了",
  more: "更多操作",
  list: "对话",
  exported: "导出",
  compact: "压缩对话…",
  erase: "彻底删除…",
  loading: "加载中",
  now: "刚刚",
});
