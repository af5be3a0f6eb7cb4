// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Password",
  about: "A new password ends all other logins of yours. API keys stay.",
  current: "Current password",
  currentHint: "Leave it empty if you have no password yet; you can set the first one within ten minutes of a login.",
  next: "New password",
  hint: "At least 12 characters.",
  save: "Change password",
  done: "The password was changed.",
}, {
  title: "密码",
  about: "新密码会结束您的所有其他登录。API 密钥不受影响。",
  current: "当前密码",
  currentHint: "还没有密码时请留空；首个密码须在登录后十分钟内设置。",
  next: "新密码",
  hint: "至少 12 个字符。",
  save: "更改密码",
  done: "密码已更改。",
});
