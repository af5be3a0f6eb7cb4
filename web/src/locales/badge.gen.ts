// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  asks: (tool: string | number) => `${tool} needs approval`,
  review: (tool: string | number) => `The result of ${tool} needs review`,
  question: "A question for you",
  limit: "Step limit reached. Continue?",
  untitled: "A conversation",
  standing: (n: number) => (n === 1 ? "1 approval pending." : `${n} approvals pending.`),
}, {
  asks: (tool: string | number) => `${tool} 请求批准`,
  review: (tool: string | number) => `${tool}：结果待审阅`,
  question: "有一个问题",
  limit: "已达到步数上限。继续吗？",
  untitled: "一个对话",
  standing: (n: number) => `有 ${n} 个审批待处理。`,
});
