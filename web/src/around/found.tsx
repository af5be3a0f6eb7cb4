/** Messages that have the words. */
import { useEffect, useState } from "preact/hooks";
import type { FoundView } from "@everturn/client";
import { client, explain } from "../app/app";
import { link } from "../app/route";
import { titleOf } from "../app/titles";
import { words } from "../app/words";
import { ErrorLine, Spinner } from "../ui/kit";
import { searchable, snippet, wordsOf } from "./finding";
import { topOf } from "./list";
import { sessions } from "./sessions";
import { useSettled } from "./settled";

const useWords = words(
  { none: "Nothing was found.", loading: "Searching", found: "Found messages", untitled: "Untitled conversation", you: "you" },
  { none: "没有找到。", loading: "搜索中", found: "找到的消息", untitled: "未命名对话", you: "你" },
);

type Result = { query: string; found: readonly FoundView[]; problem: string };

/** Search, once somebody has stopped typing; the newest question counts, in whatever order the answers come. */
export function useSearch(query: string, limit = 50): Result | null {
  const settled = useSettled(query);
  const [result, setResult] = useState<Result | null>(null);
  useEffect(() => {
    if (!settled) return setResult(null);
    let isWanted = true;
    client.search(settled, limit).then(
      ({ found }) => isWanted && setResult({ query: settled, found, problem: "" }),
      (error: Error) => isWanted && setResult({ query: settled, found: [], problem: explain(error) }),
    );
    return () => void (isWanted = false);
  }, [settled, limit]);
  return result;
}

export function Found({ query }: { query: string }) {
  const t = useWords();
  const result = useSearch(query);
  if (!result) return <div class="more"><Spinner label={t.loading} /></div>;
  if (result.problem) return <ErrorLine>{result.problem}</ErrorLine>;
  if (!result.found.length) return <p class="empty small muted" role="status">{t.none}</p>;
  return (
    <ul class="found" aria-label={t.found}>
      {result.found.map(({ session, message, title }) => (
        <li key={`${session} ${message.id}`}>
          <a href={link({ page: "session", session, message: message.id })}>
            <span class="row">
              <span class="title ellipsis grow" dir="auto">{titleOf(topOf(session), title || sessions.get(topOf(session))?.title) || t.untitled}</span>
              <span class="who muted ellipsis">{message.role === "user" ? t.you : message.by}</span>
            </span>
            <Snippet text={searchable(message)} query={result.query} />
          </a>
        </li>
      ))}
    </ul>
  );
}

/** A few words around what was found. */
export function Snippet({ text, query }: { text: string; query: string }) {
  return (
    <span class="snippet" dir="auto">
      {snippet(text, wordsOf(query)).map((piece, at) => (piece.isHit ? <mark key={at}>{piece.text}</mark> : piece.text))}
    </span>
  );
}
