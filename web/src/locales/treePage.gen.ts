// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Branches",
  back: "Back to the conversation",
  loading: "Loading",
  empty: "This conversation has no messages.",
  count: (count: number) => (count === 1 ? "1 branch." : `${count} branches.`),
  keys: "Arrow keys move, Enter opens a message.",
  role: (role: string) => (role === "user" ? "You" : role === "assistant" ? "Assistant" : "Notice"),
  nothing: "No text",
  folded: (count: number) => (count === 1 ? "1 more message" : `${count} more messages`),
  branches: (count: number) => (count === 1 ? "1 branch" : `${count} branches`),
  current: "current",
  use: "Continue from here",
}, {
  title: "分支",
  back: "返回对话",
  loading: "加载中",
  empty: "此对话没有消息。",
  count: (count: number) => `${count} 个分支。`,
  keys: "方向键移动，Enter 打开消息。",
  role: (role: string) => (role === "user" ? "您" : role === "assistant" ? "助手" : "通知"),
  nothing: "无文本",
  folded: (count: number) => `另外 ${count} 条消息`,
  branches: (count: number) => `${count} 个分支`,
  current: "当前",
  use: "从这里继续",
});
