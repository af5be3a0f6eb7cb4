// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  remove: (name: string | number) => `Remove ${name}`,
  again: "Try again",
  sending: "Uploading",
  file: "file",
  files: "Attached files",
}, {
  remove: (name: string | number) => `移除 ${name}`,
  again: "重试",
  sending: "正在上传",
  file: "文件",
  files: "附件",
});
