// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  picture: "Picture",
  sound: "Sound",
  save: "Download",
  listen: "Listen",
  broken: "This picture cannot be shown.",
  text: "Text",
  read: (name: string | number) => `Show the text of ${name}`,
}, {
  picture: "图片",
  sound: "音频",
  save: "下载",
  listen: "播放",
  broken: "无法显示这张图片。",
  text: "文本",
  read: (name: string | number) => `显示 ${name} 的文本`,
});
