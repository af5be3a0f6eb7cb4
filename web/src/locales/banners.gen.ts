// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  ended: "Your login has expired. What you typed is still here: log in again in another tab, then continue.",
  open: "Log in in a new tab",
  again: "Continue",
  still: "Nobody is logged in yet.",
  plain: "This page was loaded over plain http from another machine, so the browser disables notifications and file access. Serve it over https, or open it through an SSH tunnel as localhost.",
  dismiss: "Dismiss",
}, {
  ended: "登录已失效。您输入的内容还在：请在另一个标签页重新登录，然后继续。",
  open: "在新标签页登录",
  again: "继续",
  still: "还没有人登录。",
  plain: "此页面通过普通 http 从另一台机器载入，因此无法使用通知和浏览器文件存储。请改用 https，或通过 SSH 隧道以 localhost 打开。",
  dismiss: "关闭",
});
