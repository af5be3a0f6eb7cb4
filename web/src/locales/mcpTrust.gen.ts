// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.
import { defineTexts } from "../app/texts";

export const useTexts = defineTexts({
  title: (name: string | number) => `Trust ${name}?`,
  start: "Everturn will start or connect to it as shown here. You then see the tools it lists; none can be called until you trust those too.",
  tools: "These tools are new or have changed. The model reads these descriptions: look for instructions that do not belong there.",
  program: "Program",
  address: "Address",
  hands: "It receives",
  nothing: "nothing",
  args: "Its arguments are in the configuration.",
  yes: "Trust it as shown",
  no: "Not now",
  unseen: "There is no earlier version to compare with.",
  changesLabel: "What it says of its tools",
}, {
  title: (name: string | number) => `信任 ${name}？`,
  start: "将按此处所示启动或连接。之后会向您展示它的工具；在您信任这些工具之前，都不能调用。",
  tools: "这些工具是新增的，或与之前不同。模型会读到服务器对工具的描述：请留意其中不该出现的指令。",
  program: "程序",
  address: "地址",
  hands: "传入",
  nothing: "无",
  args: "其参数见配置文件。",
  yes: "按所示信任",
  no: "暂不",
  unseen: "服务器没有保存可供对比的早期版本。",
  changesLabel: "它对工具的描述",
});
