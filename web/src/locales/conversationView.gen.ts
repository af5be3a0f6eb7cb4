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
  read_only: "This conversation is shared with you to read. Its author can let you write in it.",
  admin: "Open as administrator…",
  unloaded: "The conversation could not be loaded. Trying again …",
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
  read_only: "此对话仅供您阅读。作者可以允许您写入。",
  admin: "以管理员身份打开…",
  unloaded: "对话无法载入，正在重试……",
});
