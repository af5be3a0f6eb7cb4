/** Call states: icon, tone and texts of each. */
import { defineTexts } from "../app/texts";
import type { CallState } from "@everturn/client";
import type { IconName, Tone } from "../ui/components";

export const STATE_STYLE: Readonly<Record<CallState | "writing" | "never" | "still_running", readonly [IconName, Tone | undefined]>> = {
  writing: ["edit", undefined], pending: ["clock", undefined], never: ["clock", undefined], still_running: ["redo", "accent"], asking: ["lock", "warn"], running: ["redo", "accent"], waiting: ["wait", "accent"], reviewing: ["eye", "warn"],
  completed: ["check", "good"], failed: ["alert", "bad"], denied: ["close", "bad"], withheld: ["eye", "warn"], cancelled: ["stop", "warn"], outcome_unknown: ["alert", "warn"],
};

export const useCardTexts = defineTexts(
  {
    writing: "Being written", pending: "Waiting to run", never: "Never ran", still_running: "Still running", asking: "Needs an answer", running: "Running", waiting: "Suspended", reviewing: "Result to be read", completed: "Done", failed: "Failed", denied: "Denied", withheld: "Withheld", cancelled: "Cancelled", outcome_unknown: "Outcome unknown",
    unknownWhy: "It may or may not have happened. It was not repeated.", incomplete: "It did not run: a limit of this turn was reached.", withheldWhy: "It did run. Its result was not given to the model.", stillRunningWhy: "The turn went on without it. The tool still runs; what it brings will be shown here.", waitingWhy: "It waits for an answer or another turn, and goes on by itself.",
    repaired: (requested: string, ran: string) => `The model asked for ${requested}; ${ran} ran.`, edited: "A person changed the arguments", changed: "The arguments were changed before it ran", asked: "Asked", used: "Used",
    input: "Arguments", raw: "Raw", output: "Result", late: "Late result", lateAt: (time: string) => `Came at ${time}, after the call was cancelled. The model has not read it as the result.`, progress: "Progress",
    untrusted: "untrusted text", private: "private values held back", sensitive: "made from private data", redacted: "redacted", code: (code: string) => `Code: ${code}`, whole: "Download the whole", excerpt: "This is an excerpt; the whole is kept.", nothing: "No text",
    byRule: "Allowed by a rule", byPerson: "Allowed at a gate", why: "Why", subagent: "Sub-agent run", subagentOpen: "Show what it does", nested: "Calls it made", identity: "Identity", copy: "Copy", copied: "Copied", change: "What it changes", ran: "Runs in", metadata: "Data beside the text",
    deniedWhy: "Reason", gone: "This sub-agent run cannot be seen.", loading: "Loading …", openSession: "Open as a conversation",
  },
  {
    writing: "正在书写参数", pending: "等待运行", never: "未曾运行", still_running: "仍在运行", asking: "等待批准", running: "运行中", waiting: "已搁置", reviewing: "结果待审阅", completed: "完成", failed: "失败", denied: "已拒绝", withheld: "结果未发送", cancelled: "已取消", outcome_unknown: "结果未知",
    unknownWhy: "它可能发生了，也可能没有。没有重复执行。", incomplete: "没有运行：本轮已达到上限。", withheldWhy: "它确实运行了，但结果没有交给模型。", stillRunningWhy: "本轮已不再等它。工具仍在运行，结果到达后会显示在这里。", waitingWhy: "它在等待回答或另一轮，之后会自行继续。",
    repaired: (requested: string, ran: string) => `模型请求的是 ${requested}，实际运行的是 ${ran}。`, edited: "有人修改了参数", changed: "运行前参数被更改", asked: "请求", used: "实际",
    input: "参数", raw: "原文", output: "结果", late: "迟到的结果", lateAt: (time: string) => `于 ${time} 到达，此时调用已取消。模型没有将其作为结果读取。`, progress: "进度",
    untrusted: "不可信文本", private: "私有值已隐去", sensitive: "源自私有数据", redacted: "已遮盖", code: (code: string) => `代码：${code}`, whole: "下载全文", excerpt: "这是节选，全文已保存。", nothing: "没有文本",
    byRule: "由规则允许", byPerson: "经人批准", why: "原因", subagent: "子任务", subagentOpen: "查看它在做什么", nested: "它发起的调用", identity: "标识", copy: "复制", copied: "已复制", change: "更改内容", ran: "运行于", metadata: "文本之外的数据",
    deniedWhy: "理由", gone: "无法查看该子任务。", loading: "加载中…", openSession: "作为对话打开",
  },
);
export type CardTexts = ReturnType<typeof useCardTexts>;
