// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: (count: number) => (count === 1 ? "1 file changed" : `${count} files changed`),
  added: "new",
  deleted: "deleted",
  modified: "changed",
  lines: (plus: number, minus: string | number) => `${plus} ${plus === 1 ? "line" : "lines"} added, ${minus} removed`,
  before: "Revert to before this step…",
  after: "Revert to after this step…",
  own: "files of this conversation",
  back: "Undo…",
  reverted: (by: string | number, to: string | number, when: string | number) => `${by} reverted the files to ${to} this step · ${when}`,
  someone: "Someone",
  all: (count: string | number) => `Show all ${count}`,
}, {
  title: (count: number) => `${count} 个文件有变化`,
  added: "新增",
  deleted: "删除",
  modified: "修改",
  lines: (plus: number, minus: string | number) => `新增 ${plus} 行，删除 ${minus} 行`,
  before: "恢复到此步骤之前…",
  after: "恢复到此步骤之后…",
  own: "此对话的文件",
  back: "撤回恢复…",
  reverted: (by: string | number, to: string | number, when: string | number) => `${by} 已将文件恢复到此步骤${to === "before" ? "之前" : "之后"} · ${when}`,
  someone: "有人",
  all: (count: string | number) => `显示全部 ${count} 个`,
});
