// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  loading: "Opening the conversation",
  gone: "This conversation does not exist, or you have no access to it.",
  fresh: "Start a new one",
  other: "You are viewing an inactive branch.",
  here: "Use this branch",
  back: "Back to the active branch",
  viewer: "You can read this conversation, but not write in it.",
  untitled: "Conversation",
  lost: "You no longer have access to this conversation.",
  read_only: "You can read this conversation. Its author can let you write in it.",
  admin: "Open as administrator…",
  unloaded: "The conversation could not be loaded. Trying again …",
  quarantined: "The server process that worked on this conversation ended several times without progress, so it was stopped. Send a message to try again. If it stops again, tell an owner.",
}, {
  loading: "正在打开对话",
  gone: "此对话已不存在，或您无权查看。",
  fresh: "开始新对话",
  other: "您正在查看的不是当前继续的分支。",
  here: "从此分支继续",
  back: "回到当前分支",
  viewer: "您可以阅读此对话，但不能发言。",
  untitled: "对话",
  lost: "您已无权访问此对话。",
  read_only: "您可以阅读此对话。作者可以允许您写入。",
  admin: "以管理员身份打开…",
  unloaded: "对话无法载入，正在重试……",
  quarantined: "处理此对话的服务器进程多次在没有进展的情况下终止，因此对话已被停止。发送一条消息即可重试；如果再次停止，请告知所有者。",
});
