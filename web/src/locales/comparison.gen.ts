// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  compare: "Compare models",
  compared: "Models that answer side by side",
  clear: "Do not compare",
  title: (count: number) => (count === 1 ? "Answer of 1 model" : `Answers of ${count} models, side by side`),
  answer: (number: string | number, count: string | number, model: string | number) => `Answer ${number} of ${count}: ${model}`,
  tokens: (count: string | number) => `${count} tokens`,
  chosen: "Continues here",
  choose: "Continue with this answer",
  stop: (model: string | number) => `Stop ${model}`,
  finished: (count: number, done: string | number) => (count === 1 ? `${done} of 1 answer is complete.` : `${done} of ${count} answers are complete.`),
  active: (model: string | number) => `Your next message continues from ${model}.`,
}, {
  compare: "比较模型",
  compared: "并排回答的模型",
  clear: "不比较",
  title: (count: number) => `${count} 个模型的回答，并排显示`,
  answer: (number: string | number, count: string | number, model: string | number) => `回答 ${number}/${count}：${model}`,
  tokens: (count: string | number) => `${count} 个 token`,
  chosen: "从这里继续",
  choose: "用此回答继续",
  stop: (model: string | number) => `停止 ${model}`,
  finished: (count: number, done: string | number) => `${count} 个回答中已完成 ${done} 个。`,
  active: (model: string | number) => `下一条消息将从 ${model} 的回答继续。`,
});
