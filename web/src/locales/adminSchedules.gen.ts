// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  about: "All schedules of the tenant. You can pause and delete those of other people; their messages and conversations are private to them.",
  none: "There are no schedules yet.",
  users: "Schedules by user",
  user: "User",
  nobody: "(no user)",
  schedules: "Schedules",
  active: "Active",
  started: "Runs",
  missed: "Missed",
  shown: "Show",
  all: "All users",
}, {
  about: "本租户的全部定时任务。您可以暂停和删除他人的任务；其消息和对话仅本人可见。",
  none: "还没有定时任务。",
  users: "按用户统计的定时任务",
  user: "用户",
  nobody: "（无用户）",
  schedules: "定时任务",
  active: "启用",
  started: "运行",
  missed: "错过",
  shown: "显示",
  all: "全部用户",
});
