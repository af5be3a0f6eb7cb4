// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: (kind: string | number) => `Preview: ${kind}`,
  drawing: "Drawing the preview",
  failed: (reason: string | number) => `The preview failed: ${reason}`,
  late: "The preview did not answer in time.",
  reduced: "Scripts, links and remote content are left out of previews.",
}, {
  title: (kind: string | number) => `预览：${kind}`,
  drawing: "正在绘制预览",
  failed: (reason: string | number) => `无法绘制：${reason}`,
  late: "无法绘制：预览未能及时响应。",
  reduced: "预览中不包含脚本、链接和远程内容。",
});
