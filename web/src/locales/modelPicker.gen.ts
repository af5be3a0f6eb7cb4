// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Select a model",
  search: "Search models",
  none: "No results",
  count: (count: number) => (count === 1 ? `${count} model` : `${count} models`),
  own: "agent's own",
  context: (tokens: string | number) => `${tokens} context`,
  prices: (input: string | number, output: string | number) => `${input} in, ${output} out`,
  unknown: "price unknown",
  image: "images",
  audio: "audio",
  pdf: "PDF",
  tools: "tools",
  prompted: "tools by prompt",
  note: "Prices are in US dollars per million tokens.",
}, {
  title: "选择模型",
  search: "搜索模型",
  none: "无结果",
  count: (count: number) => `${count} 个模型`,
  own: "助手默认",
  context: (tokens: string | number) => `上下文 ${tokens}`,
  prices: (input: string | number, output: string | number) => `输入 ${input}，输出 ${output}`,
  unknown: "价格未知",
  image: "图片",
  audio: "音频",
  pdf: "PDF",
  tools: "工具",
  prompted: "通过提示词调用工具",
  note: "价格单位为每百万 token 的美元数。",
});
