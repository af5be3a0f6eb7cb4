// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Log in",
  how: "Open the link that the server printed when it started. It works once; if it was used or is older than ten minutes, make another on the server:",
  then: "Open it in this browser. This page continues automatically as soon as you are logged in.",
  provider: "Log in with your provider",
  or: "or with a link",
  look: "I've logged in",
  still: "This browser is not logged in yet.",
  other: "中文",
}, {
  title: "登录",
  how: "请打开服务器启动时打印的链接。它只能使用一次；如果已经用过或超过十分钟，请在服务器所在的机器上再生成一个：",
  then: "在此浏览器中打开该链接。登录成功后，本页会自动继续。",
  provider: "使用身份提供方登录",
  or: "或使用链接",
  look: "我已登录",
  still: "此浏览器尚未登录。",
  other: "English",
});
