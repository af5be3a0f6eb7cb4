/** Search results: messages that match a query. */
import { useEffect, useState } from "preact/hooks";
import type { SearchHit } from "@everturn/client";
import { client, errorMessage } from "../app/app";
import { hrefFor } from "../app/route";
import { sessionTitle } from "../app/titles";
import { ErrorLine, Spinner } from "../ui/components";
import { searchableText, makeSnippet, queryTerms } from "./search";
import { topSession } from "./sessionList";
import { sessions } from "./sessions";
import { useDebounced } from "./useDebounced";
import { useTexts } from "../locales/searchResults.gen";

type SearchState = { query: string; results: readonly SearchHit[]; problem: string };

/** Search after a pause in typing; only the result of the latest query counts. */
export function useSearch(query: string, limit = 50): SearchState | null {
  const debounced = useDebounced(query);
  const [result, setResult] = useState<SearchState | null>(null);
  useEffect(() => {
    if (!debounced) return setResult(null);
    let isCurrent = true;
    client.search(debounced, limit).then(
      ({ results }) => isCurrent && setResult({ query: debounced, results, problem: "" }),
      (error: Error) => isCurrent && setResult({ query: debounced, results: [], problem: errorMessage(error) }),
    );
    return () => void (isCurrent = false);
  }, [debounced, limit]);
  return result;
}

export function SearchResults({ query }: { query: string }) {
  const t = useTexts();
  const result = useSearch(query);
  if (!result) return <div class="more"><Spinner label={t.loading} /></div>;
  if (result.problem) return <ErrorLine>{result.problem}</ErrorLine>;
  if (!result.results.length) return <p class="empty small muted" role="status">{t.none}</p>;
  return (
    <ul class="search-results" aria-label={t.results}>
      {result.results.map(({ session, message, title }) => (
        <li key={`${session} ${message.id}`}>
          <a href={hrefFor({ page: "session", session, message: message.id })}>
            <span class="row">
              <span class="title ellipsis grow" dir="auto">{sessionTitle(topSession(session), title || sessions.get(topSession(session))?.title) || t.untitled}</span>
              <span class="author muted ellipsis">{message.role === "user" ? t.you : message.by}</span>
            </span>
            <Snippet text={searchableText(message)} query={result.query} />
          </a>
        </li>
      ))}
    </ul>
  );
}

/** An excerpt around the hits. */
export function Snippet({ text, query }: { text: string; query: string }) {
  return (
    <span class="snippet" dir="auto">
      {makeSnippet(text, queryTerms(query)).map((piece, index) => (piece.isHit ? <mark key={index}>{piece.text}</mark> : piece.text))}
    </span>
  );
}
