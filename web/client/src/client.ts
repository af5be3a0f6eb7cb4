/** Client for the native HTTP API: one method per request. Sends carry an idempotency key, so a repeat takes effect once. */
import type {
  AgentList, AnswerGate, CacheUsageView, CancelTurn, ClaimGate, ClaimView, CompactSession, ContextReport, EditMessage, ErrorResponse, FileView, ForkedAnswer, SearchResults, GateList, SessionGrantList, LinkView, Looking, LogPage, LogTail, Me,
  MessageList, NewLink, NewMessage, NewSession, NewShare, NoticeList, OpenAsAdministrator, OpenedLink, PatchSession, PeopleList, PresenceView, PutRating, QueueList, RegenerateAnswer, RevertFiles, RevertView, SelectBranch, MessageReceipt, SessionPage, SessionView, ShareView, SharingView, ToolList,
  SentRequestView, TraceView, TranscriptView, TreeView, TurnView, UsageView,
} from "./types.gen.js";
import { ServerError } from "./errors.js";
import { follow, sleep, type FollowOptions } from "./stream.js";

/** Something that holds a connection open, and closes it while the client is suspended. */
export interface Follower {
  suspend(): void;
  resume(): void;
}

export interface ClientOptions {
  /** Address of the server; "" is the origin of the page. */
  base?: string;
  /** API key. Without one the browser's cookie authenticates. */
  token?: string;
  fetch?: typeof fetch;
  /** Called on 401: the login is missing or has expired. */
  onUnauthenticated?: () => void;
}

const MAX_ATTEMPTS = 4; // attempts of a send with an idempotency key

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
type Query = Record<string, string | number | undefined>;

export class Everturn {
  readonly base: string;
  private readonly token: string;
  private readonly fetchFn: typeof fetch;
  private csrf = "";
  private readonly onUnauthenticated: () => void;
  private readonly followers = new Set<Follower>();
  /** Whether connections are closed for now. */
  isSuspended = false;

  constructor(options: ClientOptions = {}) {
    this.base = (options.base ?? "").replace(/\/$/, "");
    this.token = options.token ?? "";
    this.onUnauthenticated = options.onUnauthenticated ?? (() => {});
    this.fetchFn = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** The authenticated user. Call it first with cookie authentication: it loads the CSRF token that changes need. */
  async me(): Promise<Me> {
    const me = await this.get<Me>("/api/me");
    this.csrf = me.csrf;
    return me;
  }

  agents = () => this.get<AgentList>("/api/agents");
  tools = () => this.get<ToolList>("/api/tools");
  sessions = (limit = 50, before = "", archived: "exclude" | "include" | "only" = "exclude") =>
    this.get<SessionPage>("/api/sessions", { limit, before: before || undefined, archived });
  session = (session: string) => this.get<SessionView>(sessionPath(session));
  /** Rename, pin, archive or label a session; a field that is left out stays as it is. */
  update = (session: string, change: PatchSession, key = newKey()) => this.send<SessionView>("PATCH", sessionPath(session), change, key);
  erase = (session: string) => this.send<void>("DELETE", sessionPath(session));
  startSession = (session: NewSession, key = newKey()) => this.send<MessageReceipt>("POST", "/api/sessions", session, key);
  sendMessage = (session: string, message: NewMessage, key = newKey()) => this.send<MessageReceipt>("POST", `${sessionPath(session)}/messages`, message, key);
  messages = (session: string, page: { leaf?: string; before?: string; limit?: string } = {}) =>
    this.get<MessageList>(`${sessionPath(session)}/messages`, page);
  /** The selected branch, or the one that ends at `leaf`, from its first message on, read page by page. */
  async allMessages(session: string, leaf?: string): Promise<MessageList> {
    const pages = [await this.messages(session, { leaf, limit: "1000" })];
    while (pages[0]!.next) pages.unshift(await this.messages(session, { before: pages[0]!.next, limit: "1000" }));
    return { messages: pages.flatMap((page) => page.messages), ratings: pages.flatMap((page) => page.ratings), next: "" };
  }
  tree = (session: string) => this.get<TreeView>(`${sessionPath(session)}/tree`);
  /** The last turns of a log, or the last that started before a position. */
  logTail = (session: string, before = 0) => this.get<LogTail>(`${sessionPath(session)}/log/tail`, before ? { before } : {});
  log = (session: string, after = 0, limit = 2000) => this.get<LogPage>(`${sessionPath(session)}/log`, { after, limit });
  queue = (session: string) => this.get<QueueList>(`${sessionPath(session)}/queue`);
  rate = (session: string, message: string, rated: PutRating, key = newKey()) =>
    this.send<void>("PUT", `${sessionPath(session)}/messages/${id(message)}/rating`, rated, key);
  fork = (session: string, message: string, step: number, key = newKey()) =>
    this.send<ForkedAnswer>("POST", `${sessionPath(session)}/messages/${id(message)}/fork`, { step }, key);
  rerun = (session: string, message: string, how: RegenerateAnswer = {}, key = newKey()) =>
    this.send<MessageReceipt>("POST", `${sessionPath(session)}/messages/${id(message)}/rerun`, how, key);
  edit = (session: string, message: string, edited: EditMessage, key = newKey()) =>
    this.send<MessageReceipt>("POST", `${sessionPath(session)}/messages/${id(message)}/edit`, edited, key);
  /** What fills the context window of the selected branch, or of the one that ends `at` a message. */
  context = (session: string, how: { at?: string; model?: string } = {}) => this.get<ContextReport>(`${sessionPath(session)}/context`, how);
  /** Summarise the earlier part of the selected branch. */
  compact = (session: string, how: CompactSession = {}, key = newKey()) => this.send<MessageReceipt>("POST", `${sessionPath(session)}/compact`, how, key);
  remove = (session: string, message: string) => this.send<void>("DELETE", `${sessionPath(session)}/messages/${id(message)}`);
  select = (session: string, selected: SelectBranch) => this.send<void>("POST", `${sessionPath(session)}/select`, selected);
  turn = (session: string, turn: string) => this.get<TurnView>(`${sessionPath(session)}/turns/${id(turn)}`);
  /** The timeline of a turn, also while it runs. */
  trace = (session: string, turn: string) => this.get<TraceView>(`${sessionPath(session)}/turns/${id(turn)}/trace`);
  /** The request of a step; its system prompt and parameters are for approvers. */
  sentRequest = (session: string, turn: string, step: number) => this.get<SentRequestView>(`${sessionPath(session)}/turns/${id(turn)}/request`, { step });
  cancel = (session: string, turn: string, how: CancelTurn = {}, key = newKey()) =>
    this.send<void>("POST", `${sessionPath(session)}/turns/${id(turn)}/cancel`, how, key);
  gates = (session?: string, after?: string) =>
    session ? this.get<GateList>(`${sessionPath(session)}/gates`) : this.get<GateList>("/api/gates", { after });
  answer = (session: string, gate: string, answered: AnswerGate) =>
    this.send<void>("POST", `${sessionPath(session)}/gates/${id(gate)}/answer`, answered);
  claim = (session: string, gate: string, claim: ClaimGate) =>
    this.send<ClaimView>("POST", `${sessionPath(session)}/gates/${id(gate)}/claim`, claim);
  grants = (session: string) => this.get<SessionGrantList>(`${sessionPath(session)}/grants`);
  revoke = (session: string, grant: string) => this.send<void>("DELETE", `${sessionPath(session)}/grants/${id(grant)}`);
  revert = (session: string, reverted: RevertFiles) => this.send<RevertView>("POST", `${sessionPath(session)}/revert`, reverted);
  /** Users of the tenant, whom a session can be shared with. */
  people = () => this.get<PeopleList>("/api/people");
  /** Say what a tab shows, and learn who else looks at it. It is also sent while the page closes. */
  look = (looking: Looking) => this.request<PresenceView>("POST", "/api/presence", JSON.stringify(looking), { "content-type": "application/json" }, true);
  /** Who may see a session, and what the caller may do in it. */
  sharing = (session: string) => this.get<SharingView>(`${sessionPath(session)}/sharing`);
  share = (session: string, share: NewShare) => this.send<ShareView>("POST", `${sessionPath(session)}/shares`, share);
  /** Revoke a share or a link. */
  unshare = (session: string, share: string) => this.send<void>("DELETE", `${sessionPath(session)}/shares/${id(share)}`);
  /** Create a read-only link; its secret is shown once. */
  createLink = (session: string, link: NewLink = {}) => this.send<LinkView>("POST", `${sessionPath(session)}/links`, link);
  openLink = (link: string) => this.send<OpenedLink>("POST", "/api/links/open", { link });
  openAsAdministrator = (session: string, how: OpenAsAdministrator) => this.send<ShareView>("POST", `${sessionPath(session)}/admin-access`, how);
  /** When administrators opened sessions of the caller. */
  notices = () => this.get<NoticeList>("/api/notices");
  dismissNotice = (notice: string) => this.send<void>("DELETE", `/api/notices/${id(notice)}`);
  search = (q: string, limit = 50) => this.get<SearchResults>("/api/search", { q, limit });
  usage = (since = 0) => this.get<UsageView>("/api/usage", { since });
  cacheUsage = (since = 0) => this.get<CacheUsageView>("/api/usage/cache", { since });
  logOut = () => this.send<void>("POST", "/api/logout");

  /** Upload a file; a message refers to it by the `file` of the response. */
  upload = (data: Blob, name = "") =>
    this.request<FileView>("POST", `/api/files${queryString({ name: name || undefined })}`, data, {
      "content-type": data.type || "application/octet-stream",
    });

  /** The text of a recording: a WAV file with one channel of 16 bits. */
  transcribe = (recording: Blob, session = "") =>
    this.request<TranscriptView>("POST", `/api/transcription${queryString({ session: session || undefined })}`, recording, { "content-type": "audio/wav" });
  /** The audio of a text, without Markdown. */
  speak = async (session: string, text: string): Promise<Blob> =>
    (await this.fetchWithCsrf("POST", `${sessionPath(session)}/speech`, JSON.stringify({ text }), { "content-type": "application/json" })).blob();
  /** The bytes of a file that a session refers to. */
  blob = async (session: string, blob: string): Promise<Blob> => (await this.fetchWithCsrf("GET", this.blobPath(session, blob))).blob();
  blobPath = (session: string, blob: string) => `${sessionPath(session)}/blobs/${id(blob)}`;
  exportSession = async (session: string): Promise<Blob> => (await this.fetchWithCsrf("GET", `${sessionPath(session)}/export`)).blob();
  importSession = (file: Blob) => this.request<SessionView>("POST", "/api/import", file, { "content-type": "application/zip" });

  /** The events of a session from a cursor, without end: it reconnects by itself. See `SessionFollower`. */
  events = (session: string, how: Omit<FollowOptions, "open">) => follow({ ...how, open: this.streamOpener(`${sessionPath(session)}/events`) });
  inbox = (how: Omit<FollowOptions, "open">) => follow({ ...how, open: this.streamOpener("/api/events") });

  /** Close the connections of all followers while the tab is hidden: a browser has only six per server. Turns keep running on the server. */
  suspend(): void {
    this.isSuspended = true;
    for (const follower of this.followers) follower.suspend();
  }

  /** Reconnect all followers; each continues at its cursor. */
  resume(): void {
    this.isSuspended = false;
    for (const follower of this.followers) follower.resume();
  }

  attach(follower: Follower): void {
    this.followers.add(follower);
    if (!this.isSuspended) follower.resume();
  }

  detach(follower: Follower): void {
    this.followers.delete(follower);
    follower.suspend();
  }

  /** GET any path of the API. */
  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.request<T>("GET", path + queryString(query));
  }

  /** Any other method, with a JSON body. */
  send<T>(method: Method, path: string, body?: unknown, key = ""): Promise<T> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    const text = body === undefined ? undefined : JSON.stringify(body);
    return key ? this.sendWithRetry<T>(method, path, text, { ...headers, "idempotency-key": key }) : this.request<T>(method, path, text, headers);
  }

  /** Send with retries: the same idempotency key makes a repeat harmless when a response was lost. */
  private async sendWithRetry<T>(method: Method, path: string, body: string | undefined, headers: Record<string, string>): Promise<T> {
    for (let left = MAX_ATTEMPTS - 1; ; left--) {
      try {
        return await this.request<T>(method, path, body, headers);
      } catch (error) {
        const isFinal = !(error instanceof ServerError) || !error.isAway || error.status === 429;
        if (isFinal || !left || error.retryAfter > 5) throw error;
        await sleep(Math.max(error.retryAfter * 1000, 300 * 2 ** (MAX_ATTEMPTS - 1 - left)));
      }
    }
  }

  private async request<T>(method: Method, path: string, body?: BodyInit, headers: Record<string, string> = {}, keepalive = false): Promise<T> {
    const answer = await this.fetchWithCsrf(method, path, body, headers, keepalive);
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  private async fetchWithCsrf(method: Method, path: string, body?: BodyInit, headers: Record<string, string> = {}, keepalive = false): Promise<Response> {
    let answer = await this.fetchOnce(method, path, body, headers, keepalive);
    if (answer.status === 403 && !this.token && method !== "GET" && (await toServerError(answer.clone())).code === "csrf") {
      await this.me(); // the login was renewed, or this is the first change
      answer = await this.fetchOnce(method, path, body, headers, keepalive);
    }
    return this.checkResponse(answer);
  }

  private async checkResponse(answer: Response): Promise<Response> {
    if (answer.ok) return answer;
    if (answer.status === 401) this.onUnauthenticated();
    throw await toServerError(answer);
  }

  private async fetchOnce(method: Method, path: string, body?: BodyInit, headers: Record<string, string> = {}, keepalive = false): Promise<Response> {
    const allHeaders: Record<string, string> = { ...headers };
    if (this.token) allHeaders["authorization"] = `Bearer ${this.token}`;
    else if (method !== "GET" && this.csrf) allHeaders["x-csrf-token"] = this.csrf;
    try {
      return await this.fetchFn(this.base + path, { method, headers: allHeaders, body, credentials: "same-origin", cache: "no-store", ...(keepalive && { keepalive }) });
    } catch (error) {
      throw new ServerError(0, "away", error instanceof Error ? error.message : String(error));
    }
  }

  private streamOpener(path: string): FollowOptions["open"] {
    return async (after, signal) => {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (this.token) headers["authorization"] = `Bearer ${this.token}`;
      const query = after ? { after } : {};
      const answer = await this.fetchFn(this.base + path + queryString(query), { headers, signal, credentials: "same-origin", cache: "no-store" });
      await this.checkResponse(answer);
      // A captive portal or proxy may answer with a web page instead of the stream.
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) throw new ServerError(0, "unreadable", "this is no event stream");
      return answer;
    };
  }
}

/** A new idempotency key. Works where `randomUUID` is missing (plain http on a LAN). */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const id = encodeURIComponent;
const sessionPath = (session: string) => `/api/sessions/${id(session)}`;

function queryString(query: Query): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined);
  return entries.length ? `?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}` : "";
}

async function toServerError(answer: Response): Promise<ServerError> {
  const retry = Number(answer.headers.get("retry-after")) || 0;
  try {
    const { error } = (await answer.json()) as ErrorResponse;
    return new ServerError(answer.status, error.code, error.message, error.where, retry);
  } catch {
    return new ServerError(answer.status, "unreadable", `the server answered ${answer.status}`, "", retry);
  }
}
