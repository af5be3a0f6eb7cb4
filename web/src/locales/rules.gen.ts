// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  allow: "allow",
  ask: "ask",
  deny: "deny",
  defaults: "Tool defaults",
  config: "Configuration",
  agent: "This agent",
  session: "This conversation",
  grants: "Grants",
  approval_auto: "runs without approval",
  approval_ask: "needs approval",
  approval_always: "always requires approval",
  approval_deny: "always denied",
  review_always: "result reviewed",
  review_on_error: "failures reviewed",
}, {
  allow: "允许",
  ask: "询问",
  deny: "拒绝",
  defaults: "工具自身",
  config: "配置文件",
  agent: "此智能体",
  session: "对话",
  grants: "由人允许",
  approval_auto: "自动执行",
  approval_ask: "询问直到获准",
  approval_always: "每次询问",
  approval_deny: "从不执行",
  review_always: "结果需审核",
  review_on_error: "失败需审核",
});
