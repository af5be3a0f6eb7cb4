/** Notice: text that a plugin or the runtime gave to the model. Drawn apart from user messages. */
import type { Message, NoticePart } from "@everturn/client";
import { defineTexts } from "../app/texts";
import { Disclosure, Icon } from "../ui/components";
import { showControls } from "./textEscapes";

const useTexts = defineTexts(
  {
    runtime: "Everturn", told: (by: string) => `${by} told the model`, late: "A late result was handed to the model", max_steps: "The steps are used up: the model was asked to conclude",
    limit: "A limit is reached: the model was asked to conclude", loop: "A loop was stopped", compaction: "Earlier messages were summed up to make room", info: "Note to the model",
  },
  {
    runtime: "Everturn", told: (by: string) => `${by} 告知模型`, late: "迟到的结果已交给模型", max_steps: "步数已用完：已请模型总结",
    limit: "已达到限额：已请模型总结", loop: "循环已被制止", compaction: "较早的消息已被压缩以腾出空间", info: "给模型的说明",
  },
);

const KINDS = ["late", "max_steps", "limit", "loop", "compaction"] as const;

export function Notice({ part, by }: { part: NoticePart; by: string }) {
  const t = useTexts();
  const kind = KINDS.find((prefix) => part.kind === prefix || part.kind.startsWith(`${prefix}:`) || part.kind.startsWith(`${prefix}_`));
  const author = !by || by === "everturn" ? t.runtime : showControls(by);
  const title = kind ? t[kind] : t.told(author);
  return (
    <Disclosure class="notice" summary={<><Icon name="file" /><span>{title}</span>{kind && author !== t.runtime && <span class="muted">{author}</span>}</>}>
      <pre dir="auto">{showControls(part.text)}</pre>
    </Disclosure>
  );
}

export function NoticeMessage({ message }: { message: Message }) {
  return (
    <>
      {(message.parts ?? []).map((part, index) =>
        part.type === "notice" ? <Notice key={index} part={part} by={message.by ?? ""} />
        : part.type === "text" ? <Notice key={index} part={{ type: "notice", kind: "", text: part.text }} by={message.by ?? ""} /> : null)}
    </>
  );
}
