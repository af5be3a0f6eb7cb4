// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Open as administrator",
  what: "If this conversation exists, it is private. You can read it for a limited time. The audit log records it, and the author is told.",
  reason: "Reason",
  told: "The author reads this.",
  time: "Time",
  minutes: (n: number) => (n === 1 ? "1 minute" : `${n} minutes`),
  cancel: "Cancel",
  open: "Open",
}, {
  title: "以管理员身份打开",
  what: "如果此对话存在，则它是私密的。您可以在有限的时间内阅读它。审计日志会记录此操作，并会告知作者。",
  reason: "原因",
  told: "作者会看到此内容。",
  time: "时长",
  minutes: (n: number) => (`${n} 分钟`),
  cancel: "取消",
  open: "打开",
});
