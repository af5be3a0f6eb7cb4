// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: (number: string | number) => `Request of step ${number}`,
  loading: "Loading",
  about: "Assembled again from the log, before it is rendered for the provider.",
  leftOut: (names: string | number) => `These plugins may have changed it and are not called again: ${names}.`,
  model: "Model",
  hidden: "System prompt and parameters are shown to approvers.",
  system: "System prompt",
  params: "Parameters",
  tools: "Tools",
  messages: (count: number) => (count === 1 ? "1 message" : `${count} messages`),
  role: (role: string) => (role === "user" ? "User" : role === "assistant" ? "Assistant" : role === "tool" ? "Tool results" : "Message"),
  kind: (kind: string) => (kind === "reasoning" ? "Reasoning" : kind === "notice" ? "Notice" : kind === "file" ? "File" : kind === "call" ? "Call" : kind === "result" ? "Result" : "Text"),
  cut: (count: string | number) => `Its beginning; it has ${count} characters.`,
}, {
  title: (number: string | number) => `第 ${number} 步的请求`,
  loading: "加载中",
  about: "根据日志重新组装，为渲染给提供商之前的内容。",
  leftOut: (names: string | number) => `以下插件可能修改过它，此处不再调用：${names}。`,
  model: "模型",
  hidden: "系统提示词和参数仅对审批者显示。",
  system: "系统提示词",
  params: "参数",
  tools: "工具",
  messages: (count: number) => `${count} 条消息`,
  role: (role: string) => (role === "user" ? "用户" : role === "assistant" ? "助手" : role === "tool" ? "工具结果" : "消息"),
  kind: (kind: string) => (kind === "reasoning" ? "推理" : kind === "notice" ? "通知" : kind === "file" ? "文件" : kind === "call" ? "调用" : kind === "result" ? "结果" : "文本"),
  cut: (count: string | number) => `仅显示开头；共 ${count} 个字符。`,
});
