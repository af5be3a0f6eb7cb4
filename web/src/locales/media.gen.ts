// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  picture: "Picture",
  sound: "Sound",
  save: "Download",
  listen: "Listen",
  broken: "This picture cannot be shown.",
}, {
  picture: "图片",
  sound: "音频",
  save: "下载",
  listen: "播放",
  broken: "无法显示这张图片。",
});
