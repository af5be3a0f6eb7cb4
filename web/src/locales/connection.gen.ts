// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  lost: "Connection lost. Reconnecting …",
  goesOn: "The turn does not need this page: it continues on the server, or when the server is back.",
  back: "Reconnected. Nothing is missing.",
}, {
  lost: "连接已断开，正在重新连接。",
  goesOn: "这一轮不依赖本页面：它会在服务器上继续，或在服务器恢复后继续。",
  back: "已重新连接，没有遗漏。",
});
