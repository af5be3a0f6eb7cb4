/** What a provider ran by itself, such as a web search, and the sources of a text. */
import type { ProviderToolPart, TextPart } from "@everturn/client";
import { Disclosure, Icon } from "../ui/components";
import { useTexts } from "../locales/notice.gen";
import { Markdown } from "./markdown";
import { showControls } from "./textEscapes";

/** A call of a tool that the provider ran, and its result. */
export function ProviderTool({ part }: { part: ProviderToolPart }) {
  const t = useTexts();
  const state = part.state ?? "completed";
  const summary = <><Icon name="link" /><span>{showControls(part.name)}</span><span class="muted ellipsis">{showControls(part.title ?? "")}</span><span class="muted">{t[state]}</span></>;
  return <Disclosure class="notice provider-tool" summary={summary}><pre dir="auto">{showControls(part.text ?? "")}</pre></Disclosure>;
}

/** A text with the numbers of its sources, and the sources under it; a source is a link only if it is a web address. */
export function CitedText({ part }: { part: TextPart }) {
  const t = useTexts();
  const { text, sources } = numberSources(part);
  return (
    <>
      <Markdown text={text} isLive={false} />
      <ol class="small muted" aria-label={t.sources}>
        {sources.map(({ title, source }) => (
          <li key={`${title} ${source}`}>
            {isWebAddress(source) ? <a href={source} target="_blank" rel="noreferrer noopener nofollow">{showControls(title || source)}</a> : showControls(title || source)}
          </li>
        ))}
      </ol>
    </>
  );
}

/** Positions count code points, as the log does; a string of JavaScript counts UTF-16 units. */
export function numberSources(part: TextPart): { text: string; sources: { title: string; source: string }[] } {
  const sources: { title: string; source: string }[] = [];
  const marks = new Map<number, Set<number>>();
  for (const { end, title = "", source = "" } of part.citations ?? []) {
    let at = sources.findIndex((known) => known.title === title && known.source === source);
    if (at < 0) at = sources.push({ title, source }) - 1;
    marks.set(end, (marks.get(end) ?? new Set()).add(at + 1));
  }
  const points = [...part.text];
  for (const end of [...marks.keys()].sort((a, b) => b - a)) points.splice(end, 0, ...[...marks.get(end)!].map((number) => `[${number}]`));
  return { text: points.join(""), sources };
}

const isWebAddress = (address: string) => URL.canParse(address) && ["https:", "http:"].includes(new URL(address).protocol);
