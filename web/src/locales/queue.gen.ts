// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  queued: "Queued",
  next: "next",
  steers: "joins at the next step",
  back: "Take back",
  now: "Stop and send now",
  files: (count: number) => (count === 1 ? "1 file" : `${count} files`),
}, {
  queued: "等待发送",
  next: "下一条",
  steers: "将在下一步发送给模型",
  back: "收回",
  now: "停止并立即发送",
  files: (count: number) => `${count} 个文件`,
});
