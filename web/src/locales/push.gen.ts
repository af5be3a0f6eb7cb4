// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Push notifications",
  hint: "Tells this browser of approvals, also while no tab is open. It ends when you log out here.",
  on: "Turn on in this browser",
  off: "Turn off",
  missing: "This browser has no Web Push.",
  insecure: "Push notifications need https.",
  denied: "Notifications are blocked. Allow them for this site in the browser.",
  unavailable: "The server has no push notifications: cryptography is not installed.",
  browsers: "Browsers",
  this: "this browser",
  since: (time: string | number) => `since ${time}`,
  remove: (browser: string | number) => `Remove ${browser}`,
  failed: (reason: string | number) => `The browser could not subscribe: ${reason}`,
  unnamed: "Browser",
}, {
  title: "推送通知",
  hint: "即使没有打开标签页，也会在此浏览器中通知审批。您在此退出登录后停止。",
  on: "在此浏览器中开启",
  off: "关闭",
  missing: "此浏览器不支持 Web Push。",
  insecure: "推送通知需要 https。",
  denied: "通知已被阻止。请在浏览器中允许此网站的通知。",
  unavailable: "服务器不支持推送通知：未安装 cryptography。",
  browsers: "浏览器",
  this: "此浏览器",
  since: (time: string | number) => `自 ${time}`,
  remove: (browser: string | number) => `移除 ${browser}`,
  failed: (reason: string | number) => `浏览器无法订阅：${reason}`,
  unnamed: "浏览器",
});
