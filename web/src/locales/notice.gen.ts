// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  runtime: "Everturn",
  told: (by: string | number) => `${by} added a note for the model`,
  late: "A late result was passed to the model",
  max_steps: "Step limit reached: the model was asked for a final answer",
  limit: "Limit reached: the model was asked for a final answer",
  loop: "A loop was stopped",
  compaction: "Earlier messages were summarised to make room",
  info: "Note to the model",
  selection: "Selection",
  page: "Page",
  note: "Note",
}, {
  runtime: "Everturn",
  told: (by: string | number) => `${by} 告知模型`,
  late: "迟到的结果已交给模型",
  max_steps: "步数已用完：已请模型总结",
  limit: "已达到限额：已请模型总结",
  loop: "循环已被制止",
  compaction: "较早的消息已被压缩以腾出空间",
  info: "给模型的说明",
  selection: "选中内容",
  page: "页面",
  note: "笔记",
});
