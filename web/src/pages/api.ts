/** API requests of the settings pages, and hooks to fetch and refresh. */
import { useCallback, useEffect, useState } from "preact/hooks";
import type {
  ExplainCall, ExplainView, GrantList, LoginView, McpList, RulesView, SetupView, TrustServer,
} from "@everturn/client";
import { client, errorMessage } from "../app/app";

const id = encodeURIComponent;

export const fetchRules = (agent: string) => client.get<RulesView>("/api/rules", { agent: agent || undefined });
export const explainCall = (request: ExplainCall) => client.send<ExplainView>("POST", "/api/explain", request);
export const fetchGrants = () => client.get<GrantList>("/api/grants");
export const revokeGrant = (grant: string) => client.send<void>("DELETE", `/api/grants/${id(grant)}`);
export const fetchMcpServers = () => client.get<McpList>("/api/mcp");
export const trustServer = (server: string, seen: TrustServer) => client.send<void>("POST", `/api/mcp/${id(server)}/trust`, seen);
export const logInToServer = (server: string) => client.send<LoginView>("POST", `/api/mcp/${id(server)}/login`);
export const retryServer = (server: string) => client.send<void>("POST", `/api/mcp/${id(server)}/retry`);
export const fetchSetup = () => client.get<SetupView>("/api/setup");

export interface Fetched<T> {
  readonly value?: T;
  readonly problem?: string;
  readonly reload: () => void;
}

/** Fetch something from the server; the old value stays while it is fetched again. */
export function useFetch<T>(load: () => Promise<T>, ...dependencies: readonly unknown[]): Fetched<T> {
  const [state, setState] = useState<{ value?: T; problem?: string }>({});
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    load().then(
      (value) => isCurrent && setState({ value }),
      (error: Error) => isCurrent && setState((before) => ({ ...before, problem: errorMessage(error) })),
    );
    return () => void (isCurrent = false);
  }, [tries, ...dependencies]);
  return { ...state, reload: useCallback(() => setTries((count) => count + 1), []) };
}

/** Call a function at an interval, while the tab is visible. */
export function useInterval(seconds: number, run: () => void): void {
  useEffect(() => {
    if (!seconds) return;
    const timer = setInterval(() => document.hidden || run(), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds, run]);
}
