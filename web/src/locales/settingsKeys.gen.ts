// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  palette: "Commands and search",
  send: "Send",
  line: "New line",
  stop: "Stop the turn",
  edit: "Edit your last message (when the input is empty)",
  allow: "Allow once (on a focused approval)",
  always: "Always allow: choose the grant",
  deny: "Deny, with a reason",
  change: "Edit the arguments",
  next: "Next and previous approval in the inbox",
  steer: "Steer: send into the running turn",
  gate: "Go to the first approval",
  redact: "Redact the selection (in a result under review)",
}, {
  palette: "命令与搜索",
  send: "发送",
  line: "换行",
  stop: "停止当前轮次",
  edit: "编辑上一条消息（输入框为空时）",
  allow: "允许一次（焦点在审批上时）",
  always: "始终允许：选择要记住的规则",
  deny: "拒绝并说明理由",
  change: "编辑将要运行的内容",
  next: "待办中的下一个与上一个审批",
  steer: "引导：发送到正在运行的轮次",
  gate: "转到第一个审批",
  redact: "遮盖所选内容（审阅结果时）",
});
