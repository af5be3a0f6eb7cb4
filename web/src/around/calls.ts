/** What the pages about the installation ask for, and a way to read it again. */
import { useCallback, useEffect, useState } from "preact/hooks";
import type {
  Explain, ExplainView, GrantedList, LoginView, McpList, RulesView, SetupView, TrustServer,
} from "@everturn/client";
import { client, explain as inWords } from "../app/app";

const id = encodeURIComponent;

export const rules = (agent: string) => client.get<RulesView>("/api/rules", { agent: agent || undefined });
export const explain = (asked: Explain) => client.send<ExplainView>("POST", "/api/explain", asked);
export const granted = () => client.get<GrantedList>("/api/grants");
export const revoke = (grant: string) => client.send<void>("DELETE", `/api/grants/${id(grant)}`);
export const servers = () => client.get<McpList>("/api/mcp");
export const trust = (server: string, seen: TrustServer) => client.send<void>("POST", `/api/mcp/${id(server)}/trust`, seen);
export const logIn = (server: string) => client.send<LoginView>("POST", `/api/mcp/${id(server)}/login`);
export const retry = (server: string) => client.send<void>("POST", `/api/mcp/${id(server)}/retry`);
export const setup = () => client.get<SetupView>("/api/setup");

export interface Read<T> {
  readonly value?: T;
  readonly problem?: string;
  readonly again: () => void;
}

/** Something of the server's: what was read stays while it is read again. */
export function useRead<T>(load: () => Promise<T>, ...given: readonly unknown[]): Read<T> {
  const [read, setRead] = useState<{ value?: T; problem?: string }>({});
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isWanted = true;
    load().then(
      (value) => isWanted && setRead({ value }),
      (error: Error) => isWanted && setRead((before) => ({ ...before, problem: inWords(error) })),
    );
    return () => void (isWanted = false);
  }, [tries, ...given]);
  return { ...read, again: useCallback(() => setTries((count) => count + 1), []) };
}

/** Do something every so often, for as long as somebody looks. */
export function useEvery(seconds: number, run: () => void): void {
  useEffect(() => {
    if (!seconds) return;
    const timer = setInterval(() => document.hidden || run(), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds, run]);
}
