// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  of: (used: string | number, all: string | number, share: string | number) => `Context ${used} of ${all} tokens (${share})`,
  only: (used: string | number) => `Context ${used} tokens`,
  summarise: (share: string | number) => `Everturn will summarise older messages at ${share}.`,
}, {
  of: (used: string | number, all: string | number, share: string | number) => `上下文 ${used} / ${all} 个 token（${share}）`,
  only: (used: string | number) => `上下文 ${used} 个 token`,
  summarise: (share: string | number) => `达到 ${share} 时，Everturn 会总结较早的消息。`,
});
