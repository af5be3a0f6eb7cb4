// Made by scripts/web_types.py from the types in everturn.api and everturn.core. Do not edit.

/** Agents, the default one first, and the models that they name. */
export interface AgentList {
  readonly agents: readonly (AgentView)[];
  readonly models: readonly (ModelView)[];
}

/** An agent that can be talked to. */
export interface AgentView {
  readonly name: string;
  readonly description: string;
  readonly model: string;
  readonly tools: readonly (string)[] | null;
  readonly is_default: boolean;
  readonly models: readonly (string)[];
}

/** The placeholder the next steps fill. */
export interface AnswerOpened {
  readonly type: "AnswerOpened";
  readonly at?: number;
  readonly turn: string;
  readonly message: Message;
}

/** Answer a gate: one of `allow`, `deny` and `result`; see `Turn.answer`. `hash` is that of the gate as it was shown. */
export interface Answered {
  readonly hash: string;
  readonly allow?: "always" | "once" | null;
  readonly rule?: Rule | null;
  readonly deny?: string | boolean | null;
  readonly arguments?: Readonly<Record<string, unknown>> | null;
  readonly result?: string | null;
  readonly text?: string | null;
  readonly everywhere?: boolean;
  readonly until?: number;
  readonly others?: boolean;
  readonly failed?: boolean;
  readonly claim?: string;
}

/** A message a plugin has deferred until every plugin is done with the step. */
export interface Append {
  readonly message: Message;
  readonly priority?: number;
  readonly request?: boolean;
}

/** What was done, oldest first. */
export interface AuditPage {
  readonly records: readonly (AuditRecord)[];
}

/** Something that somebody did, or was refused. `hash` covers all of it and the record before, so that none can go. */
export interface AuditRecord {
  readonly tenant: string;
  readonly at: number;
  readonly by: string;
  readonly credential: string;
  readonly did: string;
  readonly on?: string;
  readonly detail?: string;
  readonly n?: number;
  readonly hash?: string;
}

/** What a turn may do: the rules beside the runtime's, and the tools it has. */
export interface Authority {
  readonly rules?: readonly (Rule)[];
  readonly tools?: readonly (string)[] | null;
}

/** How much may be used; 0 is no limit. `seconds` count from the start, waiting included. */
export interface Budget {
  readonly steps?: number;
  readonly calls?: number;
  readonly tokens?: number;
  readonly cost?: number;
  readonly seconds?: number;
}

/** A call is about to have a sub-turn run: this one, in this session. */
export interface CallBelow {
  readonly type: "CallBelow";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly session: string;
  readonly below: string;
  readonly number?: number;
}

/** A piece of a call's arguments; `text` may be empty when only the name is known. */
export interface CallDelta {
  readonly type: "CallDelta";
  readonly turn: string;
  readonly seq: number;
  readonly part: number;
  readonly offset: number;
  readonly text: string;
  readonly call: string;
  readonly name: string;
}

/** The rules, or a person at a gate, have decided about a call. One stands before every start, in the same append. */
export interface CallJudged {
  readonly type: "CallJudged";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly tool: string;
  readonly identity: string;
  readonly hash: string;
  readonly allowed: boolean;
  readonly why: string;
  readonly rule?: Rule | null;
  readonly gate?: string;
  readonly mark?: string;
}

/** A tool that runs makes a call of its own: it is judged, asked about and run like any, and no model sees it. */
export interface CallMade {
  readonly type: "CallMade";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly parent: string;
  readonly name: string;
  readonly arguments: string;
  readonly identity?: string;
}

/** A tool was put aside until these gates are answered, these calls settled, this sub-turn over. */
export interface CallPaused {
  readonly type: "CallPaused";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly kept?: string;
  readonly gates?: readonly (string)[];
  readonly calls?: readonly (string)[];
  readonly below?: string;
}

/** What a running tool says of itself; shown when it happens, and to nobody later. */
export interface CallProgress {
  readonly type: "CallProgress";
  readonly turn: string;
  readonly call: string;
  readonly text: string;
}

/** A tool that was put aside is about to be begun again. Written before the effect, always. */
export interface CallResumed {
  readonly type: "CallResumed";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
}

/** A call has its one result. When it is `out` its tool runs on without it, and hands in a late one. */
export interface CallSettled {
  readonly type: "CallSettled";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly state: CallState;
  readonly output: Output;
  readonly out?: boolean;
  readonly spent?: Spent | null;
  readonly trail?: readonly (string)[];
}

/** A tool is about to run with exactly these arguments. Written before the effect, always. */
export interface CallStarted {
  readonly type: "CallStarted";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly hash: string;
  readonly effects: Effects;
  readonly key: string;
}

/** The sub-turn that a call waits for is about to be over. */
export interface CallStirred {
  readonly type: "CallStirred";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly command?: string;
}

/** End a turn; `hard` ends its tools as well. */
export interface Cancelled {
  readonly hard?: boolean;
}

/** One of the things that a call would do, judged by itself. */
export interface CaseView {
  readonly case: Readonly<Record<string, string>>;
  readonly action: "allow" | "ask" | "deny";
  readonly rule: RuleView | null;
  readonly reason: string;
}

/** A client takes a call upon itself; `claim` is a name nobody can guess, and comes back with the answer. */
export interface Claim {
  readonly hash: string;
  readonly claim: string;
  readonly lease?: number;
}

/** A call is this client's, until then. */
export interface ClaimView {
  readonly until: number;
}

/** A client has taken a call upon itself, until a time. */
export interface Claimed {
  readonly by: string;
  readonly until: number;
}

/** A tool that a face brings with it: its client does what is asked, and answers with what came of it. */
export interface ClientTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>> | null;
  readonly effects?: Effects;
  readonly execute?: "ask" | "ask_once" | "auto" | "deny";
  readonly timeout?: number;
  readonly lease?: number;
}

/** An admitted command had lost its object when its turn came (a cancel of a turn that was over). */
export interface CommandDropped {
  readonly type: "CommandDropped";
  readonly at?: number;
  readonly command: string;
  readonly reason: string;
}

/** A new version of a message of the person's, and an answer to it. */
export interface Edited {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly model?: string;
}

/** What went wrong: a stable code, a text for people that says what to do next, and where a bad value stands. */
export interface ErrorView {
  readonly code: string;
  readonly message: string;
  readonly where: string;
}

/** What would become of a call? Nothing is run. */
export interface Explain {
  readonly tool: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly agent?: string;
  readonly session?: string | null;
}

/** What would become of a call, which rule decides, and what else fits. */
export interface ExplainView {
  readonly action: "allow" | "ask" | "deny";
  readonly reason: string;
  readonly rule: RuleView | null;
  readonly is_final: boolean;
  readonly cases: readonly (CaseView)[];
  readonly others: readonly (RuleView)[];
  readonly lines: readonly (string)[];
  readonly problem: string;
  readonly by_hand: boolean;
  readonly review: string;
}

/** The body of every answer that is no success. */
export interface Failure {
  readonly error: ErrorView;
}

/** A file that is not what it was: how, and by how many lines. */
export interface FileChange {
  readonly path: string;
  readonly kind: "added" | "deleted" | "modified";
  readonly added?: number;
  readonly removed?: number;
}

/** A file, by reference: the bytes are a blob. */
export interface FilePart {
  readonly type: "file";
  readonly blob: string;
  readonly media_type: string;
  readonly size: number;
  readonly name?: string;
}

/** A file that is kept. `file` is what a message names it by; it is good for this tenant only. */
export interface FileView {
  readonly file: string;
  readonly part: FilePart;
}

/** What became of files beneath a root in a step; "" is the session's own, where a call changes them one by one. */
export interface FilesChanged {
  readonly type: "FilesChanged";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly before: string;
  readonly after: string;
  readonly root?: string;
  readonly changes?: readonly (FileChange)[];
  readonly call?: string;
  readonly blobs?: readonly (string)[];
}

/** What became of files in a step: the tree before and after it, and what changed. "" is the session's own root. */
export interface FilesPart {
  readonly type: "files";
  readonly step: number;
  readonly before: string;
  readonly after: string;
  readonly changes?: readonly (FileChange)[];
  readonly root?: string;
}

/** Files are again what they were; `before` is what they were until now, so that this can be taken back. */
export interface FilesReverted {
  readonly type: "FilesReverted";
  readonly at?: number;
  readonly root: string;
  readonly before: string;
  readonly after: string;
  readonly by?: string;
  readonly command?: string;
}

/** What was found, newest first. */
export interface FoundList {
  readonly found: readonly (FoundView)[];
}

/** A message that has the words, and the title of the conversation that it is in or below. */
export interface FoundView {
  readonly session: string;
  readonly message: Message;
  readonly title: string;
}

/** A question to a person, bound by `hash` to the very bytes that would be executed. */
export interface Gate {
  readonly id: string;
  readonly turn: string;
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly hash: string;
  readonly expires?: number;
  readonly kind?: GateKind;
  readonly session?: string;
  readonly identity?: string;
  readonly why?: string;
  readonly offers?: readonly (Rule)[];
  readonly session_only?: boolean;
  readonly output?: Output | null;
  readonly failed?: boolean;
  readonly mark?: string;
  readonly preview?: string;
  readonly basis?: string;
  readonly form?: string;
  readonly once?: boolean;
  readonly lease?: number;
}

/** Somebody who may has answered, once. */
export interface GateAnswered {
  readonly type: "GateAnswered";
  readonly at?: number;
  readonly turn: string;
  readonly gate: string;
  readonly call: string;
  readonly verdict: Verdict;
  readonly command?: string;
  readonly grant?: Grant | null;
}

/** A client has taken a call upon itself; nobody else may do it meanwhile. */
export interface GateClaimed {
  readonly type: "GateClaimed";
  readonly at?: number;
  readonly turn: string;
  readonly gate: string;
  readonly claim: Claimed;
  readonly command?: string;
}

/** Questions that stand open, oldest first, and after what the next page begins; "": these were the last. */
export interface GateList {
  readonly gates: readonly (GateView)[];
  readonly next: string;
}

/** A call asks a person. */
export interface GateOpened {
  readonly type: "GateOpened";
  readonly at?: number;
  readonly turn: string;
  readonly gate: Gate;
}

/** A question that stands open: where, since when, and which client has it, if it is for one. */
export interface GateView {
  readonly session: string;
  readonly title: string;
  readonly opened: number;
  readonly gate: Gate;
  readonly claim: Claimed | null;
}

/** A remembered answer. It holds in one session and its sub-turns, or (`session` is empty) in all of the tenant's. */
export interface Grant {
  readonly id: string;
  readonly rule: Rule;
  readonly session?: string;
  readonly by?: string;
  readonly at?: number;
  readonly expires?: number;
  readonly tool?: string;
  readonly identity?: string;
  readonly asker?: string;
}

/** What people have allowed from then on. */
export interface GrantList {
  readonly grants: readonly (Grant)[];
}

/** A remembered answer holds no more. */
export interface GrantRevoked {
  readonly type: "GrantRevoked";
  readonly at?: number;
  readonly grant: string;
  readonly by?: string;
  readonly command?: string;
}

/** What people have allowed from then on, newest first. */
export interface GrantedList {
  readonly grants: readonly (GrantedView)[];
}

/** A remembered answer, the session it was given in, and the title of the one that it holds in. */
export interface GrantedView {
  readonly grant: Grant;
  readonly origin: string;
  readonly title: string;
}

/** A plugin is done with a step, and these are the appends it deferred. */
export interface HookFinished {
  readonly type: "HookFinished";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly plugin: string;
  readonly deferred?: readonly (Append)[];
}

/** One message of the stream for a whole tenant: first a snapshot, then what changes. A missed one does no harm: with */
export interface InboxItem {
  readonly snapshot?: InboxView | null;
  readonly session?: SessionView | null;
  readonly waits?: readonly (GateView)[] | null;
  readonly end?: "" | "drain" | "revoked" | "slow";
}

/** What waits for somebody, and what is under way. What is behind `next` comes then, session by session. */
export interface InboxView {
  readonly gates: readonly (GateView)[];
  readonly awake: readonly (SessionView)[];
  readonly next: string;
}

/** One message of an event stream, `data:` of it; its `id:` is the cursor after it. Exactly one field says what it is. */
export interface Item {
  readonly seq?: number;
  readonly event?: LogEvent | null;
  readonly delta?: StreamDelta | null;
  readonly progress?: CallProgress | null;
  readonly end?: "" | "drain" | "erased" | "lost" | "over" | "revoked" | "slow";
}

/** Credentials, oldest first. */
export interface KeyList {
  readonly keys: readonly (KeyView)[];
}

/** A credential, without its secret. */
export interface KeyView {
  readonly id: string;
  readonly user: string;
  readonly kind: "key" | "link" | "login";
  readonly name: string;
  readonly role: Role;
  readonly created: number;
  readonly expires: number;
  readonly revoked: number;
}

/** A tool finished after its call had been settled as cancelled; the result stays beside the call. */
export interface LateArrived {
  readonly type: "LateArrived";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly output: Output;
  readonly command?: string;
}

/** Another branch was selected. */
export interface LeafSelected {
  readonly type: "LeafSelected";
  readonly at?: number;
  readonly message: string | null;
  readonly command?: string;
}

/** A budget is used up, or a loop was denied: no call starts any more, and the next request is the last. */
export interface LimitReached {
  readonly type: "LimitReached";
  readonly at?: number;
  readonly turn: string;
  readonly limit: string;
  readonly scope: "above" | "session" | "tenant" | "turn";
  readonly text: string;
}

/** Where a sub-turn comes from, and what it may do and use because of that. */
export interface Lineage {
  readonly session: string;
  readonly turn: string;
  readonly depth?: number;
  readonly left?: Budget;
  readonly until?: number;
  readonly within?: readonly (Authority)[];
  readonly trail?: readonly (string)[];
  readonly untrusted?: boolean;
  readonly private?: boolean;
  readonly by?: readonly [string, string, string];
  readonly is_detached?: boolean;
}

/** An event at its place in the log. */
export interface LogItem {
  readonly seq: number;
  readonly event: LogEvent;
}

/** Some of a session's log, in order; `is_whole`: these were the last, and a stream goes on `after` their `seq`. */
export interface LogPage {
  readonly entries: readonly (LogItem)[];
  readonly is_whole: boolean;
}

/** The address at which a person logs in, in a browser on the machine of the server. */
export interface LoginView {
  readonly address: string;
}

/** MCP servers, as they are configured. */
export interface McpList {
  readonly servers: readonly (McpView)[];
}

/** A tool of an MCP server. */
export interface McpToolView {
  readonly name: string;
  readonly description: string;
  readonly is_changed: boolean;
}

/** An MCP server, as this node sees it. What is below `tools` only operators are told. */
export interface McpView {
  readonly name: string;
  readonly transport: "http" | "stdio";
  readonly state: "connecting" | "down" | "failed" | "needs_login" | "ready" | "untrusted";
  readonly since: number;
  readonly title: string;
  readonly tools: readonly (McpToolView)[];
  readonly reason: string;
  readonly problems: readonly (string)[];
  readonly runs: string;
  readonly variables: readonly (string)[];
  readonly changes: readonly (string)[];
  readonly hash: string;
  readonly can_log_in: boolean;
  readonly is_logging_in: boolean;
  readonly login_problem: string;
}

/** Who is asking. */
export interface Me {
  readonly tenant: string;
  readonly user: string;
  readonly role: Role;
  readonly version: string;
  readonly csrf: string;
}

/** A node: what a person wrote, what a model answered, or what a plugin appended. */
export interface Message {
  readonly id: string;
  readonly parent: string | null;
  readonly role: MessageRole;
  readonly parts?: readonly (Part)[];
  readonly by?: string;
  readonly turn?: string;
  readonly hidden?: boolean;
}

/** A plugin, or the runtime itself, appended a message; `request` asks for another step. */
export interface MessageAdded {
  readonly type: "MessageAdded";
  readonly at?: number;
  readonly turn: string;
  readonly message: Message;
  readonly request?: boolean;
  readonly command?: string;
}

/** A message and everything under it was hidden. */
export interface MessageDeleted {
  readonly type: "MessageDeleted";
  readonly at?: number;
  readonly message: string;
  readonly command?: string;
}

/** A branch, oldest first; or its end, and before which message the page before it ends; "": there is none. */
export interface MessageList {
  readonly messages: readonly (Message)[];
  readonly next: string;
}

/** A model that one of the agents may use. */
export interface ModelView {
  readonly name: string;
  readonly badge: string;
  readonly context: number;
}

/** A new API key for a user of the tenant, who may do at most this much with it. */
export interface NewKey {
  readonly name?: string;
  readonly user?: string;
  readonly role?: Role;
  readonly expires?: number;
}

/** A new key: this is the only time that anybody sees its secret. */
export interface NewKeyView {
  readonly id: string;
  readonly user: string;
  readonly kind: "key" | "link" | "login";
  readonly name: string;
  readonly role: Role;
  readonly created: number;
  readonly expires: number;
  readonly revoked: number;
  readonly secret: string;
}

/** Go on: at the end of the selected branch, or `after` a message. */
export interface NewMessage {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly agent?: string;
  readonly model?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly tools?: readonly (string)[] | null;
  readonly history?: "digest" | "full" | "none" | "results" | null;
  readonly late?: "discard" | "hold" | "inject" | null;
  readonly max_steps?: number | null;
  readonly clients?: readonly (ClientTool)[];
  readonly busy?: "fork" | "queue" | "reject" | "steer";
  readonly after?: string | null;
}

/** Begin a session with its first message. There is none without one. */
export interface NewSession {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly agent?: string;
  readonly model?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly tools?: readonly (string)[] | null;
  readonly history?: "digest" | "full" | "none" | "results" | null;
  readonly late?: "discard" | "hold" | "inject" | null;
  readonly max_steps?: number | null;
  readonly clients?: readonly (ClientTool)[];
  readonly busy?: "fork" | "queue" | "reject" | "steer";
}

/** Something the runtime or a plugin has to say to the model; never a person's words. */
export interface NoticePart {
  readonly type: "notice";
  readonly kind: string;
  readonly text: string;
}

/** A provider's sealed payload (a signature, encrypted reasoning), to be replayed to its issuer and nobody else. */
export interface Opaque {
  readonly issuer: string;
  readonly data: string;
}

/** What a call came to. `text` is exactly what the model reads; `blob` holds the whole when `text` is an excerpt. */
export interface Output {
  readonly text: string;
  readonly title?: string;
  readonly code?: string;
  readonly blob?: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly attachments?: readonly (FilePart)[];
  readonly origin?: string;
  readonly untrusted?: boolean;
  readonly private?: string;
  readonly sensitive?: boolean;
  readonly redacted?: boolean;
}

/** Where a turn is, as anyone may see it. Each phase is announced before its work starts. */
export type Phase = "cancelled" | "completed" | "error" | "finalizing" | "idle" | "preparing" | "streaming" | "tool_call" | "waiting";

/** Why a turn failed, or what a plugin's hook reported: a stable `kind` and a text for people. */
export interface Problem {
  readonly kind: string;
  readonly text: string;
}

/** Make a tenant, or change one. */
export interface PutTenant {
  readonly name?: string;
  readonly is_active?: boolean;
}

/** Make a user, or change one. */
export interface PutUser {
  readonly name?: string;
  readonly role?: Role;
  readonly is_active?: boolean;
  readonly origin?: string | null;
}

/** What waits, in the order in which it will go. */
export interface QueueList {
  readonly queued: readonly (QueuedView)[];
}

/** A message that waits until the turn before it is over. Its turn can be cancelled; then it was never sent. */
export interface QueuedView {
  readonly turn: string;
  readonly message: string;
  readonly at: number;
  readonly text: string;
  readonly files: readonly (FilePart)[];
  readonly by: string;
  readonly steers: string;
}

/** A piece of reasoning. */
export interface ReasoningDelta {
  readonly type: "ReasoningDelta";
  readonly turn: string;
  readonly seq: number;
  readonly part: number;
  readonly offset: number;
  readonly text: string;
}

/** What the model thought on the way. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly opaque?: Opaque | null;
}

/** Another answer. */
export interface Rerun {
  readonly model?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
}

/** Files are about to be what they were; `before` is what they are now. */
export interface RevertStarted {
  readonly type: "RevertStarted";
  readonly at?: number;
  readonly root: string;
  readonly before: string;
  readonly after: string;
  readonly key: string;
}

/** Files are again what they were. */
export interface RevertView {
  readonly reverted: FilesReverted;
}

/** Let files be what they were: `tree` is the `before` or the `after` of a files part, or of an earlier revert. */
export interface Reverted {
  readonly root: string;
  readonly tree: string;
}

/** What becomes of the calls that fit it: of this tool, with these values. */
export interface Rule {
  readonly tool: string;
  readonly action: "allow" | "ask" | "deny";
  readonly match?: Readonly<Record<string, string>>;
  readonly layer?: "agent" | "config" | "defaults" | "grants" | "session";
  readonly source?: string;
}

/** A rule, as it would be written; and why it can never decide, if so. */
export interface RuleView {
  readonly rule: Rule;
  readonly text: string;
  readonly shadow: string;
}

/** All that decides on the calls of an agent, beside what people have allowed from then on. */
export interface RulesView {
  readonly agent: string;
  readonly rules: readonly (RuleView)[];
  readonly tools: readonly (ToolRules)[];
}

/** What a person says: a text, files that were uploaded before, or both. */
export interface Said {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly agent?: string;
  readonly model?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly tools?: readonly (string)[] | null;
  readonly history?: "digest" | "full" | "none" | "results" | null;
  readonly late?: "discard" | "hold" | "inject" | null;
  readonly max_steps?: number | null;
  readonly clients?: readonly (ClientTool)[];
  readonly busy?: "fork" | "queue" | "reject" | "steer";
}

/** Go on from a message; None: from the beginning. */
export interface Selected {
  readonly message?: string | null;
}

/** A message that is safe, and the turn that it begins. */
export interface Sent {
  readonly session: string;
  readonly turn: string;
  readonly message: string;
  readonly is_new: boolean;
}

/** Some sessions, and what to ask for to have more of them; "": these were the last. */
export interface SessionPage {
  readonly sessions: readonly (SessionView)[];
  readonly next: string;
  readonly waiting: readonly (string)[];
}

/** A session in a list. */
export interface SessionView {
  readonly id: string;
  readonly title: string;
  readonly agent: string;
  readonly by: string;
  readonly created: number;
  readonly touched: number;
  readonly leaf: string | null;
  readonly is_awake: boolean;
  readonly stuck: string;
  readonly above: string;
}

/** Which model answers, and how there could be another. */
export interface SetupView {
  readonly agent: string;
  readonly model: string;
  readonly is_offline: boolean;
  readonly file: string;
  readonly has_file: boolean;
  readonly has_agent: boolean;
  readonly ways: readonly (WayIn)[];
}

/** What turns have used. */
export interface Spent {
  readonly steps?: number;
  readonly calls?: number;
  readonly usage?: Usage;
}

/** The step's stream ended well, and these are its parts. */
export interface StepFinished {
  readonly type: "StepFinished";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly parts: readonly (StreamedPart)[];
  readonly finish: Finish;
  readonly usage?: Usage;
}

/** The step's stream broke off (an error or a cancel); these parts had arrived, and none of their calls runs. */
export interface StepInterrupted {
  readonly type: "StepInterrupted";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly parts: readonly (StreamedPart)[];
  readonly finish: Finish;
  readonly problem?: Problem | null;
  readonly usage?: Usage;
}

/** Where a step ended, and what it used. */
export interface StepPart {
  readonly type: "step";
  readonly step: number;
  readonly finish: Finish;
  readonly usage?: Usage;
}

/** A step whose driver died starts again; readers drop what they saw of it. */
export interface StepRestarted {
  readonly type: "StepRestarted";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
}

/** A model request is about to go out; a `closing` one carries no tools and is the last. */
export interface StepStarted {
  readonly type: "StepStarted";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly closing?: boolean;
}

/** Tenants, by id. */
export interface TenantList {
  readonly tenants: readonly (TenantView)[];
}

/** A tenant. */
export interface TenantView {
  readonly id: string;
  readonly name: string;
  readonly is_active: boolean;
}

/** A piece of text. */
export interface TextDelta {
  readonly type: "TextDelta";
  readonly turn: string;
  readonly seq: number;
  readonly part: number;
  readonly offset: number;
  readonly text: string;
}

/** Text. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly opaque?: Opaque | null;
}

/** The session has a title. */
export interface TitleSet {
  readonly type: "TitleSet";
  readonly at?: number;
  readonly turn: string;
  readonly title: string;
}

/** Tools, by name. */
export interface ToolList {
  readonly tools: readonly (ToolView)[];
}

/** A call and, once it is settled, its result. `arguments` is the text the model wrote, valid JSON or not. */
export interface ToolPart {
  readonly type: "tool";
  readonly call: string;
  readonly name: string;
  readonly arguments: string;
  readonly state?: CallState;
  readonly output?: Output | null;
  readonly late?: Output | null;
  readonly used?: string;
  readonly is_edited?: boolean;
  readonly given?: string;
  readonly opaque?: Opaque | null;
  readonly identity?: string;
  readonly parent?: string;
}

/** What a tool says of itself, where no rule says more. */
export interface ToolRules {
  readonly name: string;
  readonly origin: string;
  readonly group: string;
  readonly execute: string;
  readonly result: string;
  readonly effects: string;
  readonly is_offered: boolean;
  readonly by_hand: boolean;
  readonly egress: boolean;
  readonly subjects: Readonly<Record<string, string>>;
}

/** A tool as a model is told of it. */
export interface ToolView {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly origin: string;
  readonly execute: string;
  readonly effects: string;
  readonly group: string;
}

/** All messages of a session, as they joined, and where the selected branch ends. */
export interface TreeView {
  readonly messages: readonly (Message)[];
  readonly leaf: string | null;
}

/** Trust an MCP server as it was shown: `hash` is that of its `McpView`. */
export interface TrustServer {
  readonly hash: string;
}

/** The turn was cancelled. */
export interface TurnCancelled {
  readonly type: "TurnCancelled";
  readonly at?: number;
  readonly turn: string;
  readonly usage?: Usage;
  readonly reports?: readonly (Problem)[];
}

/** The turn ended well. */
export interface TurnCompleted {
  readonly type: "TurnCompleted";
  readonly at?: number;
  readonly turn: string;
  readonly usage?: Usage;
  readonly reports?: readonly (Problem)[];
}

/** The outcome is known; what is left is to settle, tidy up and say so. */
export interface TurnEnding {
  readonly type: "TurnEnding";
  readonly at?: number;
  readonly turn: string;
  readonly outcome: "cancelled" | "completed" | "error";
  readonly problem?: Problem | null;
  readonly hard?: boolean;
  readonly command?: string;
}

/** The turn ended in an error. */
export interface TurnFailed {
  readonly type: "TurnFailed";
  readonly at?: number;
  readonly turn: string;
  readonly problem: Problem;
  readonly usage?: Usage;
  readonly reports?: readonly (Problem)[];
}

/** What was decided for a turn when it began, and holds until it ends. */
export interface TurnOptions {
  readonly model?: string;
  readonly max_steps?: number;
  readonly history?: "digest" | "full" | "none" | "results";
  readonly late?: "discard" | "hold" | "inject";
  readonly system?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly timeout?: number;
  readonly gate_timeout?: number;
  readonly tools?: readonly (string)[] | null;
  readonly rules?: readonly (Rule)[];
  readonly result?: "ask" | "auto" | "on_error";
  readonly by_hand?: readonly (string)[];
  readonly budget?: Budget;
  readonly above?: Lineage | null;
  readonly clients?: readonly (ClientTool)[];
  readonly agent?: string;
  readonly by?: string;
}

/** Every plugin that is not done waits for something from outside; nothing is held in memory. */
export interface TurnParked {
  readonly type: "TurnParked";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
}

/** A turn began: with a new input, or (a re-run) under a message that is already there. */
export interface TurnStarted {
  readonly type: "TurnStarted";
  readonly at?: number;
  readonly turn: string;
  readonly parent?: string | null;
  readonly input?: Message | null;
  readonly options?: TurnOptions;
  readonly command?: string;
  readonly untitled?: boolean;
}

/** A turn as its log tells it, now. */
export interface TurnView {
  readonly session: string;
  readonly turn: string;
  readonly phase: Phase;
  readonly step: number;
  readonly messages: readonly (Message)[];
  readonly gates: readonly (Gate)[];
  readonly usage: Usage;
  readonly problem: Problem | null;
}

/** Tokens of a request, as the provider counted them, and what they cost. */
export interface Usage {
  readonly input?: number;
  readonly output?: number;
  readonly cached?: number;
  readonly reasoning?: number;
  readonly written?: number;
  readonly cost?: number | null;
  readonly estimated?: boolean;
}

/** What the tenant has used since a time. */
export interface UsageView {
  readonly since: number;
  readonly total: Spent;
  readonly days: readonly (UsedView)[];
}

/** What was used on a day, by an agent. */
export interface UsedView {
  readonly day: string;
  readonly agent: string;
  readonly spent: Spent;
}

/** Users, by id. */
export interface UserList {
  readonly users: readonly (UserView)[];
}

/** A user. */
export interface UserView {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly is_active: boolean;
  readonly origin: string;
}

/** What was answered: allow (with these arguments, if they were edited), or deny (with a reason the model reads). */
export interface Verdict {
  readonly allowed: boolean;
  readonly reason?: string;
  readonly arguments?: string;
  readonly by?: string;
  readonly result?: string | null;
  readonly failed?: boolean;
  readonly grant?: Rule | null;
  readonly everywhere?: boolean;
  readonly until?: number;
  readonly text?: string | null;
  readonly others?: boolean;
  readonly claim?: string;
}

/** A model that could be had: by a key that is in the environment, or from a server on this machine. */
export interface WayIn {
  readonly kind: "key" | "server";
  readonly name: string;
  readonly address: string;
  readonly models: readonly (string)[];
  readonly toml: string;
  readonly needs_restart: boolean;
}

export type LogEvent = TurnStarted | AnswerOpened | MessageAdded | StepStarted | StepRestarted | StepFinished | StepInterrupted | GateOpened | GateAnswered | GateClaimed | CallMade | CallJudged | LimitReached | CallStarted | CallBelow | CallPaused | CallStirred | CallResumed | CallSettled | FilesChanged | LateArrived | HookFinished | TurnParked | TurnEnding | TurnCompleted | TurnFailed | TurnCancelled | TitleSet | LeafSelected | MessageDeleted | GrantRevoked | RevertStarted | FilesReverted | CommandDropped;

export type Terminal = TurnCompleted | TurnFailed | TurnCancelled;

export type Part = TextPart | ReasoningPart | ToolPart | FilePart | StepPart | NoticePart | FilesPart;

export type StreamedPart = TextPart | ReasoningPart | ToolPart | FilePart;

export type StreamDelta = TextDelta | ReasoningDelta | CallDelta;

export type CallState = "asking" | "cancelled" | "completed" | "denied" | "failed" | "outcome_unknown" | "pending" | "reviewing" | "running" | "waiting" | "withheld";

export type Effects = "once" | "read" | "write";

export type Finish = "cancelled" | "content_filter" | "error" | "length" | "other" | "refusal" | "stop" | "tool_calls";

export type GateKind = "call" | "client" | "egress" | "form" | "hand" | "loop" | "question" | "result";

export type MessageRole = "assistant" | "notice" | "user";

export type Role = "approver" | "member" | "operator" | "owner" | "viewer";

/** A phase and an event → the next phase. */
export const TRANSITIONS: Readonly<Record<Phase, Partial<Record<LogEvent["type"], Phase>>>> = {
  idle: { TurnStarted: "preparing" },
  preparing: { TitleSet: "preparing", MessageAdded: "preparing", AnswerOpened: "preparing", LimitReached: "preparing", StepStarted: "streaming", TurnEnding: "finalizing" },
  streaming: { StepRestarted: "streaming", StepFinished: "streaming", StepInterrupted: "streaming", HookFinished: "streaming", MessageAdded: "streaming", AnswerOpened: "streaming", StepStarted: "streaming", LimitReached: "streaming", FilesChanged: "streaming", CallJudged: "tool_call", GateOpened: "tool_call", CallSettled: "tool_call", TurnParked: "waiting", TurnEnding: "finalizing" },
  tool_call: { LimitReached: "tool_call", CallJudged: "tool_call", GateOpened: "tool_call", GateAnswered: "tool_call", GateClaimed: "tool_call", CallMade: "tool_call", CallStarted: "tool_call", CallBelow: "tool_call", CallPaused: "tool_call", CallStirred: "tool_call", CallResumed: "tool_call", CallSettled: "tool_call", FilesChanged: "tool_call", HookFinished: "tool_call", MessageAdded: "tool_call", AnswerOpened: "tool_call", StepStarted: "streaming", TurnParked: "waiting", TurnEnding: "finalizing" },
  waiting: { GateAnswered: "tool_call", GateClaimed: "waiting", CallStirred: "tool_call", LimitReached: "tool_call", TurnEnding: "finalizing" },
  finalizing: { CallSettled: "finalizing", FilesChanged: "finalizing", TitleSet: "finalizing", LateArrived: "finalizing", TurnCompleted: "completed", TurnFailed: "error", TurnCancelled: "cancelled" },
  completed: { LateArrived: "completed" },
  error: { LateArrived: "error" },
  cancelled: { LateArrived: "cancelled" },
};
