// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Inbox",
  count: (n: string | number) => `${n} pending`,
  empty: "Nothing is pending",
  emptyWhy: "Approvals and results to review appear here, from all conversations.",
  oldest: "Oldest first",
  newest: "Newest first",
  open: "Open the conversation",
  untitled: "Untitled conversation",
  since: (when: string | number) => `requested ${when}`,
  keys: "J and K move between approvals, Y allows once, N denies.",
  lost: "Connecting …",
  programs: "For connected programs",
}, {
  title: "待办",
  count: (n: string | number) => `${n} 个问题等待回答`,
  empty: "没有等待您的事项",
  emptyWhy: "当工具请求运行或结果需要审阅时，无论来自哪个对话，都会出现在这里。",
  oldest: "最早在前",
  newest: "最新在前",
  open: "打开对话",
  untitled: "未命名对话",
  since: (when: string | number) => `${when}提出`,
  keys: "J 和 K 在问题间移动，Y 允许一次，N 拒绝。",
  lost: "正在连接…",
  programs: "等待客户端程序",
});
