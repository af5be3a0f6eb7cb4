// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: "Grants",
  none: "There are no grants. When someone chooses “Always” at an approval, the grant is listed here, and can be revoked.",
  again: "Try again",
  everywhere: "everywhere",
  untitled: "a conversation",
  by: (actor: string | number, when: string | number) => `by ${actor}, ${when}`,
  until: (when: string | number) => `until ${when}`,
  forever: "until it is revoked",
  revoke: "Revoke",
  label: (tool: string | number) => `Revoke the grant for ${tool}`,
  gone: "Revoked. Matching calls will ask again.",
  owner: "Only an owner can revoke a grant that applies everywhere",
}, {
  title: "已长期允许",
  none: "还没有人选择“始终允许”。这类答复会显示在这里，并可随时撤销。",
  again: "重试",
  everywhere: "所有对话",
  untitled: "未命名对话",
  by: (actor: string | number, when: string | number) => `${actor}，${when}`,
  until: (when: string | number) => `有效期至 ${when}`,
  forever: "直到撤销",
  revoke: "撤销",
  label: (tool: string | number) => `撤销对 ${tool} 的允许`,
  gone: "已撤销。此类调用会再次询问。",
  owner: "对所有对话生效的允许由所有者撤销",
});
