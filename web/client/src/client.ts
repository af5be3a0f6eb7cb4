/** Requests of the native API, one method each. Sends carry an idempotency key, so a repeat does nothing twice. */
import type {
  AgentList, Answered, Cancelled, Claim, ClaimView, Edited, Failure, FileView, FoundList, GateList, GrantList, LogPage, Me,
  MessageList, NewMessage, NewSession, QueueList, Rerun, Reverted, RevertView, Selected, Sent, SessionPage, SessionView, ToolList,
  TreeView, TurnView, UsageView,
} from "./types.gen.js";
import { ServerError } from "./errors.js";
import { follow, pause, type Follow } from "./stream.js";

/** Who holds a connection open, and lets it go while nobody looks. */
export interface Follower {
  rest(): void;
  wake(): void;
}

export interface Options {
  /** Where the server is; "" is where the page came from. */
  base?: string;
  /** An API key. Without one the browser's cookie counts. */
  token?: string;
  fetch?: typeof fetch;
  /** Called when the server no longer knows who asks: it is time to log in. */
  onStranger?: () => void;
}

const TRIES = 4; // of a send that can be repeated without harm

type Method = "GET" | "POST" | "PUT" | "DELETE";
type Query = Record<string, string | number | undefined>;

export class Everturn {
  readonly base: string;
  private readonly token: string;
  private readonly ask: typeof fetch;
  private csrf = "";
  private readonly onStranger: () => void;
  private readonly followers = new Set<Follower>();
  /** Whether connections are let go of for now. */
  isResting = false;

  constructor(options: Options = {}) {
    this.base = (options.base ?? "").replace(/\/$/, "");
    this.token = options.token ?? "";
    this.onStranger = options.onStranger ?? (() => {});
    this.ask = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Who is asking. Comes first where a cookie counts: it brings what changes need. */
  async me(): Promise<Me> {
    const me = await this.get<Me>("/api/me");
    this.csrf = me.csrf;
    return me;
  }

  agents = () => this.get<AgentList>("/api/agents");
  tools = () => this.get<ToolList>("/api/tools");
  sessions = (limit = 50, before = "") => this.get<SessionPage>("/api/sessions", { limit, before: before || undefined });
  session = (session: string) => this.get<SessionView>(at(session));
  erase = (session: string) => this.send<void>("DELETE", at(session));
  begin = (said: NewSession, key = newKey()) => this.send<Sent>("POST", "/api/sessions", said, key);
  say = (session: string, said: NewMessage, key = newKey()) => this.send<Sent>("POST", `${at(session)}/messages`, said, key);
  messages = (session: string, page: { leaf?: string; before?: string; limit?: string } = {}) =>
    this.get<MessageList>(`${at(session)}/messages`, page);
  tree = (session: string) => this.get<TreeView>(`${at(session)}/tree`);
  log = (session: string, after = 0, limit = 2000) => this.get<LogPage>(`${at(session)}/log`, { after, limit });
  queue = (session: string) => this.get<QueueList>(`${at(session)}/queue`);
  rerun = (session: string, message: string, how: Rerun = {}, key = newKey()) =>
    this.send<Sent>("POST", `${at(session)}/messages/${id(message)}/rerun`, how, key);
  edit = (session: string, message: string, edited: Edited, key = newKey()) =>
    this.send<Sent>("POST", `${at(session)}/messages/${id(message)}/edit`, edited, key);
  remove = (session: string, message: string) => this.send<void>("DELETE", `${at(session)}/messages/${id(message)}`);
  select = (session: string, selected: Selected) => this.send<void>("POST", `${at(session)}/select`, selected);
  turn = (session: string, turn: string) => this.get<TurnView>(`${at(session)}/turns/${id(turn)}`);
  cancel = (session: string, turn: string, how: Cancelled = {}, key = newKey()) =>
    this.send<void>("POST", `${at(session)}/turns/${id(turn)}/cancel`, how, key);
  gates = (session?: string, after?: string) =>
    session ? this.get<GateList>(`${at(session)}/gates`) : this.get<GateList>("/api/gates", { after });
  answer = (session: string, gate: string, answered: Answered) =>
    this.send<void>("POST", `${at(session)}/gates/${id(gate)}/answer`, answered);
  claim = (session: string, gate: string, claim: Claim) =>
    this.send<ClaimView>("POST", `${at(session)}/gates/${id(gate)}/claim`, claim);
  grants = (session: string) => this.get<GrantList>(`${at(session)}/grants`);
  revoke = (session: string, grant: string) => this.send<void>("DELETE", `${at(session)}/grants/${id(grant)}`);
  revert = (session: string, reverted: Reverted) => this.send<RevertView>("POST", `${at(session)}/revert`, reverted);
  search = (q: string, limit = 50) => this.get<FoundList>("/api/search", { q, limit });
  usage = (since = 0) => this.get<UsageView>("/api/usage", { since });
  logOut = () => this.send<void>("POST", "/api/logout");

  /** Keep a file; the `file` of the answer is what a message names it by. */
  upload = (data: Blob, name = "") =>
    this.request<FileView>("POST", `/api/files${query({ name: name || undefined })}`, data, {
      "content-type": data.type || "application/octet-stream",
    });

  /** The bytes of a file that a session mentions. */
  blob = async (session: string, blob: string): Promise<Blob> => (await this.raw("GET", this.blobPath(session, blob))).blob();
  blobPath = (session: string, blob: string) => `${at(session)}/blobs/${id(blob)}`;
  exported = async (session: string): Promise<Blob> => (await this.raw("GET", `${at(session)}/export`)).blob();
  bringIn = (file: Blob) => this.request<SessionView>("POST", "/api/import", file, { "content-type": "application/zip" });

  /** The events of a session from a cursor, for ever: it reconnects by itself. See `SessionFollower`. */
  events = (session: string, how: Omit<Follow, "open">) => follow({ ...how, open: this.opener(`${at(session)}/events`) });
  inbox = (how: Omit<Follow, "open">) => follow({ ...how, open: this.opener("/api/events") });

  /** Nobody looks: whoever follows lets its connection go, for a browser has only six to a server. What runs there runs on. */
  rest(): void {
    this.isResting = true;
    for (const follower of this.followers) follower.rest();
  }

  /** Somebody looks again: whoever followed goes on where it was. */
  wake(): void {
    this.isResting = false;
    for (const follower of this.followers) follower.wake();
  }

  enter(follower: Follower): void {
    this.followers.add(follower);
    if (!this.isResting) follower.wake();
  }

  leave(follower: Follower): void {
    this.followers.delete(follower);
    follower.rest();
  }

  /** A GET of any path of the API. */
  get<T>(path: string, asked: Query = {}): Promise<T> {
    return this.request<T>("GET", path + query(asked));
  }

  /** Anything else, with a JSON body. */
  send<T>(method: Method, path: string, body?: unknown, key = ""): Promise<T> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    const text = body === undefined ? undefined : JSON.stringify(body);
    return key ? this.sure<T>(method, path, text, { ...headers, "idempotency-key": key }) : this.request<T>(method, path, text, headers);
  }

  /** A send whose answer may get lost: the same key again is the same send. */
  private async sure<T>(method: Method, path: string, body: string | undefined, headers: Record<string, string>): Promise<T> {
    for (let left = TRIES - 1; ; left--) {
      try {
        return await this.request<T>(method, path, body, headers);
      } catch (error) {
        const isVain = !(error instanceof ServerError) || !error.isAway || error.status === 429;
        if (isVain || !left || error.retryAfter > 5) throw error;
        await pause(Math.max(error.retryAfter * 1000, 300 * 2 ** (TRIES - 1 - left)));
      }
    }
  }

  private async request<T>(method: Method, path: string, body?: BodyInit, headers: Record<string, string> = {}): Promise<T> {
    const answer = await this.raw(method, path, body, headers);
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  private async raw(method: Method, path: string, body?: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
    let answer = await this.once(method, path, body, headers);
    if (answer.status === 403 && !this.token && method !== "GET" && (await problem(answer.clone())).code === "csrf") {
      await this.me(); // the login was renewed, or this is the first change
      answer = await this.once(method, path, body, headers);
    }
    return this.good(answer);
  }

  private async good(answer: Response): Promise<Response> {
    if (answer.ok) return answer;
    if (answer.status === 401) this.onStranger();
    throw await problem(answer);
  }

  private async once(method: Method, path: string, body?: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
    const own: Record<string, string> = { ...headers };
    if (this.token) own["authorization"] = `Bearer ${this.token}`;
    else if (method !== "GET" && this.csrf) own["x-csrf-token"] = this.csrf;
    try {
      return await this.ask(this.base + path, { method, headers: own, body, credentials: "same-origin", cache: "no-store" });
    } catch (error) {
      throw new ServerError(0, "away", error instanceof Error ? error.message : String(error));
    }
  }

  private opener(path: string): Follow["open"] {
    return async (after, signal) => {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (this.token) headers["authorization"] = `Bearer ${this.token}`;
      const asked = after ? { after } : {};
      const answer = await this.ask(this.base + path + query(asked), { headers, signal, credentials: "same-origin", cache: "no-store" });
      await this.good(answer);
      // A page that a proxy or a hotel puts in the way is no stream.
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) throw new ServerError(0, "unreadable", "this is no event stream");
      return answer;
    };
  }
}

/** A key for a send: the same one again is the same send. Works where `randomUUID` is missing (plain http on a LAN). */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const id = encodeURIComponent;
const at = (session: string) => `/api/sessions/${id(session)}`;

function query(asked: Query): string {
  const given = Object.entries(asked).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

async function problem(answer: Response): Promise<ServerError> {
  const retry = Number(answer.headers.get("retry-after")) || 0;
  try {
    const { error } = (await answer.json()) as Failure;
    return new ServerError(answer.status, error.code, error.message, error.where, retry);
  } catch {
    return new ServerError(answer.status, "unreadable", `the server answered ${answer.status}`, "", retry);
  }
}
