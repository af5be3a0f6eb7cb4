/** What a plugin or the runtime told the model: drawn apart, and never as a person's words. */
import type { Message, NoticePart } from "@everturn/client";
import { words } from "../app/words";
import { Fold, Icon } from "../ui/kit";
import { visible } from "./plain";

const useWords = words(
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
  const t = useWords();
  const kind = KINDS.find((one) => part.kind === one || part.kind.startsWith(`${one}:`) || part.kind.startsWith(`${one}_`));
  const who = !by || by === "everturn" ? t.runtime : visible(by);
  const title = kind ? t[kind] : t.told(who);
  return (
    <Fold class="notice" summary={<><Icon name="file" /><span>{title}</span>{kind && who !== t.runtime && <span class="muted">{who}</span>}</>}>
      <pre dir="auto">{visible(part.text)}</pre>
    </Fold>
  );
}

export function NoticeMessage({ message }: { message: Message }) {
  return (
    <>
      {(message.parts ?? []).map((part, at) =>
        part.type === "notice" ? <Notice key={at} part={part} by={message.by ?? ""} />
        : part.type === "text" ? <Notice key={at} part={{ type: "notice", kind: "", text: part.text }} by={message.by ?? ""} /> : null)}
    </>
  );
}
