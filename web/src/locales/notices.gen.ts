// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  opened: (by: string | number, title: string | number, when: string | number, until: string | number, reason: string | number) => `${by} opened your conversation “${title}” as administrator on ${when}, until ${until}. Reason: ${reason}`,
  show: "Show the conversation",
  dismiss: "Dismiss",
  offline: "You are offline. What you write stays here; the page reconnects by itself.",
}, {
  opened: (by: string | number, title: string | number, when: string | number, until: string | number, reason: string | number) => `${by} 于 ${when} 以管理员身份打开了您的对话“${title}”，至 ${until}。原因：${reason}`,
  show: "显示对话",
  dismiss: "关闭",
  offline: "您已离线。您输入的内容会保留，页面会自动重新连接。",
});
