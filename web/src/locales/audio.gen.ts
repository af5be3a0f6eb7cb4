// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  dictate: "Dictate",
  recording: "Recording",
  stop: "Stop recording and insert the text",
  discard: "Discard the recording",
  transcribing: "Transcribing…",
  nothing: "No words were recognized in the recording.",
  denied: "The browser did not allow the microphone. Allow it for this page in the browser, then try again.",
  noMicrophone: "No microphone was found.",
  read: "Read aloud",
  stopReading: "Stop reading",
  noText: "This message has no text to read aloud.",
}, {
  dictate: "语音输入",
  recording: "正在录音",
  stop: "停止录音并填入文字",
  discard: "放弃录音",
  transcribing: "正在转写…",
  nothing: "录音中未识别到文字。",
  denied: "浏览器未允许使用麦克风。请在浏览器中为此页面授权后重试。",
  noMicrophone: "未找到麦克风。",
  read: "朗读",
  stopReading: "停止朗读",
  noText: "此消息没有可朗读的文字。",
});
