// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  files: "Attachments",
  file: "file",
}, {
  files: "附件",
  file: "文件",
});
