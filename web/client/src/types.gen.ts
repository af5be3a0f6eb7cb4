// Made by scripts/web_types.py from the types in everturn.api and everturn.core. Do not edit.

/** Use an invitation, or the link that resets a password. The password is left out where passwords are off. */
export interface AcceptInvitation {
  readonly token: string;
  readonly password?: string;
}

/** What an agent is made of, under the keys of `[agents.NAME]` in everturn.toml; code is named as `module:name`. */
export interface AgentDetails {
  readonly model: string;
  readonly models: readonly (string)[];
  readonly description: string;
  readonly instructions: readonly (string | InstructionsFunction)[];
  readonly tools: readonly (string)[];
  readonly subagents: readonly (string)[];
  readonly handoffs: readonly (string)[];
  readonly deps: string;
  readonly output_type: Readonly<Record<string, unknown>> | null;
  readonly output_retries: number;
  readonly plugins: readonly (string)[];
  readonly permissions: readonly (RuleRow)[];
  readonly budget: Budget;
  readonly max_steps: number;
  readonly timeout: number;
  readonly gate_timeout: number;
  readonly timezone: string;
  readonly reasoning: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly tool_history: "digest" | "full" | "none" | "results";
  readonly context: string;
  readonly late: "discard" | "inject" | "keep";
  readonly review: "always" | "never" | "on_error";
  readonly manual: readonly (string)[];
}

/** Agents, the default one first, and the models that they use. */
export interface AgentList {
  readonly agents: readonly (AgentView)[];
  readonly models: readonly (ModelView)[];
}

/** A person handed the session to another agent: it takes the next turns, unless a message names another. */
export interface AgentSelected {
  readonly type: "AgentSelected";
  readonly at?: number;
  readonly agent: string;
  readonly by?: string;
  readonly command?: string;
}

/** An agent. The fields are those of `[agents.NAME]` that load no code and read no file. */
export interface AgentSettings {
  readonly description?: string;
  readonly instructions?: string;
  readonly model?: string;
  readonly models?: readonly (string)[];
  readonly tools?: readonly (string)[] | null;
  readonly groups?: readonly (string)[];
  readonly subagents?: readonly (string)[];
  readonly handoffs?: readonly (string)[];
  readonly manual?: readonly (string)[];
  readonly budget?: Budget;
  readonly max_steps?: number;
  readonly context?: string;
  readonly tool_history?: "digest" | "full" | "none" | "results";
  readonly review?: "always" | "never" | "on_error";
  readonly timeout?: number;
  readonly gate_timeout?: number;
  readonly timezone?: string;
  readonly reasoning?: string;
}

/** One version of an agent that an administrator made; `problem` says why it is not in use. */
export interface AgentSettingsView {
  readonly name: string;
  readonly version: number;
  readonly by: string;
  readonly at: number;
  readonly problem: string;
  readonly is_deleted: boolean;
  readonly settings: AgentSettings;
}

/** An agent took over the turn: after a handoff, or at the start if its instructions had to be rendered. */
export interface AgentSwitched {
  readonly type: "AgentSwitched";
  readonly at?: number;
  readonly turn: string;
  readonly agent: string;
  readonly options: TurnOptions;
  readonly call?: string;
}

/** The versions of an agent, newest first. */
export interface AgentVersionList {
  readonly versions: readonly (AgentSettingsView)[];
}

/** A configured agent. */
export interface AgentView {
  readonly name: string;
  readonly description: string;
  readonly model: string;
  readonly tools: readonly (string)[] | null;
  readonly is_default: boolean;
  readonly models: readonly (string)[];
  readonly modes: readonly (string)[];
  readonly any_model: boolean;
  readonly folder: string;
  readonly details: AgentDetails | null;
}

/** The stored rules of the installation or of the tenant, and the rules that are fixed for the caller: those of files */
export interface AllRulesView {
  readonly is_editable: boolean;
  readonly scope: "installation" | "tenant";
  readonly scopes: readonly ("installation" | "tenant")[];
  readonly problem: string;
  readonly fixed: readonly (RuleView)[];
  readonly stored: RuleSettingsView | null;
}

/** Answer a gate: one of `allow`, `deny` and `result`; see `Turn.answer`. */
export interface AnswerGate {
  readonly hash: string;
  readonly allow?: "always" | "once" | null;
  readonly rule?: Rule | null;
  readonly deny?: string | boolean | null;
  readonly arguments?: Readonly<Record<string, unknown>> | null;
  readonly result?: string | null;
  readonly text?: string | null;
  readonly everywhere?: boolean;
  readonly within?: "" | "folder" | "tenant" | "user";
  readonly until?: number;
  readonly others?: boolean;
  readonly stop?: boolean;
  readonly failed?: boolean;
  readonly claim?: string;
}

/** A person rated an answer, with a reason; "" withdraws the rating. The last one of each person counts. */
export interface AnswerRated {
  readonly type: "AnswerRated";
  readonly at?: number;
  readonly message: string;
  readonly rating: "" | "down" | "up";
  readonly reason?: string;
  readonly by?: string;
  readonly command?: string;
}

/** The placeholder of the answer was added; the next steps fill it. */
export interface AnswerStarted {
  readonly type: "AnswerStarted";
  readonly at?: number;
  readonly turn: string;
  readonly message: Message;
}

/** Context that the client attaches to a message: a selection, a page, a note. A model reads it as quoted data. */
export interface AttachedContext {
  readonly kind: string;
  readonly text: string;
  readonly title?: string;
  readonly source?: string;
  readonly untrusted?: boolean;
}

/** What this server can do with audio, and its limits. */
export interface AudioView {
  readonly transcription: boolean;
  readonly speech: boolean;
  readonly max_seconds: number;
  readonly max_characters: number;
}

/** Audit records, oldest first. */
export interface AuditPage {
  readonly records: readonly (AuditRecord)[];
}

/** An audit log record: an action, done or refused. */
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

/** Limits of a turn; 0 is no limit. `seconds` count from the start, waiting included. */
export interface Budget {
  readonly steps?: number;
  readonly calls?: number;
  readonly tokens?: number;
  readonly cost?: number;
  readonly seconds?: number;
}

/** A request that read much less from the provider's prompt cache than the request before it had left there. */
export interface CacheCollapse {
  readonly cause: "compacted" | "expired" | "instructions changed" | "model changed" | "tools changed" | "unexpected";
  readonly missed: number;
}

/** Requests to one model that missed its provider's prompt cache for one cause. */
export interface CacheCollapses {
  readonly cause: "compacted" | "expired" | "instructions changed" | "model changed" | "tools changed" | "unexpected";
  readonly model: string;
  readonly requests: number;
  readonly missed: number;
}

/** Requests that missed the prompt cache since a time, most missed tokens first. */
export interface CacheUsageView {
  readonly since: number;
  readonly sessions: number;
  readonly is_partial: boolean;
  readonly collapses: readonly (CacheCollapses)[];
}

/** A client's claim of a call, valid until a time. */
export interface CallClaim {
  readonly by: string;
  readonly until: number;
}

/** A client claimed a call; no other client may run it until the claim expires. */
export interface CallClaimed {
  readonly type: "CallClaimed";
  readonly at?: number;
  readonly turn: string;
  readonly gate: string;
  readonly claim: CallClaim;
  readonly command?: string;
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

/** A call has its final result. With `still_running` its tool still runs, and delivers a late result. */
export interface CallFinished {
  readonly type: "CallFinished";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly state: CallState;
  readonly output: Output;
  readonly still_running?: boolean;
  readonly spent?: Spent | null;
  readonly recent_calls?: readonly (string)[];
}

/** The sub-agent run that a call waits for is about to end. */
export interface CallNotified {
  readonly type: "CallNotified";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly command?: string;
}

/** Progress of a running tool; shown when it happens, and never stored or repeated. */
export interface CallProgress {
  readonly type: "CallProgress";
  readonly turn: string;
  readonly call: string;
  readonly text: string;
}

/** A suspended tool is about to be resumed. Written before the effect, always. */
export interface CallResumed {
  readonly type: "CallResumed";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
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
  readonly key: string;
  readonly read_only?: boolean;
  readonly idempotent?: boolean;
}

/** A tool was suspended until these gates are resolved, these calls and waits finished and this sub-agent run over. */
export interface CallSuspended {
  readonly type: "CallSuspended";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly saved_state?: string;
  readonly gates?: readonly (string)[];
  readonly calls?: readonly (string)[];
  readonly child?: string;
  readonly waits?: readonly (string)[];
}

/** Cancel a turn; `hard` cancels its tools as well. */
export interface CancelTurn {
  readonly hard?: boolean;
}

/** How many open turns of a session are being cancelled. */
export interface CancelledSession {
  readonly turns: number;
}

/** The decision about one case of a call. */
export interface CaseView {
  readonly case: Readonly<Record<string, string>>;
  readonly action: "allow" | "ask" | "deny";
  readonly rule: RuleView | null;
  readonly reason: string;
}

/** Change the caller's own password. `current` is left out by somebody who has none yet. */
export interface ChangePassword {
  readonly new: string;
  readonly current?: string;
}

/** A source that a model names for the characters from `start` to `end` of a text part. */
export interface Citation {
  readonly start: number;
  readonly end: number;
  readonly source?: string;
  readonly title?: string;
  readonly quote?: string;
}

/** Claim a call for a client; `claim` is an unguessable name, which the client repeats in its answer. */
export interface ClaimGate {
  readonly hash: string;
  readonly claim: string;
  readonly lease?: number;
}

/** A client's claim of a call, until a time. */
export interface ClaimView {
  readonly until: number;
}

/** A compaction without a summary: in later requests on this branch the results of these calls are left out. */
export interface ClearedPart {
  readonly type: "cleared";
  readonly calls: readonly (string)[];
  readonly before?: number;
  readonly after?: number;
  readonly limit?: number;
  readonly during?: number;
}

/** A tool that a client provides: the client runs the calls and answers with the results. */
export interface ClientTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly output_schema?: Readonly<Record<string, unknown>> | null;
  readonly read_only?: boolean;
  readonly idempotent?: boolean;
  readonly approval?: "always" | "ask" | "auto" | "deny";
  readonly timeout?: number;
  readonly lease?: number;
}

/** An admitted command was dropped because its object was gone (for example, a cancel of a finished turn). */
export interface CommandDropped {
  readonly type: "CommandDropped";
  readonly at?: number;
  readonly command: string;
  readonly reason: string;
}

/** Summarise the earlier part of the selected branch. */
export interface CompactSession {
  readonly focus?: string;
}

/** There is no summary, and the conversation stays as it is. */
export interface CompactionFailed {
  readonly type: "CompactionFailed";
  readonly at?: number;
  readonly turn: string;
  readonly number: number;
  readonly problem: Problem;
  readonly usage?: Usage;
}

/** The summary is written: its message is added in the same append. */
export interface CompactionFinished {
  readonly type: "CompactionFinished";
  readonly at?: number;
  readonly turn: string;
  readonly number: number;
  readonly usage?: Usage;
  readonly model?: string;
}

/** The driver is about to request a summary of everything above `kept`; a driver that takes over repeats the request. */
export interface CompactionStarted {
  readonly type: "CompactionStarted";
  readonly at?: number;
  readonly turn: string;
  readonly number: number;
  readonly why?: "command" | "limit" | "overflow";
  readonly kept?: string;
  readonly step?: number;
  readonly task?: string;
  readonly used?: number;
  readonly limit?: number;
}

/** Context that a client attached to a message: a selection, a page, a note. A model reads it as quoted data. */
export interface ContextPart {
  readonly type: "context";
  readonly kind: string;
  readonly text: string;
  readonly title?: string;
  readonly source?: string;
  readonly untrusted?: boolean;
}

/** The context of a branch: how long its next request is, what fills it, and when it is compacted. */
export interface ContextReport {
  readonly model: string;
  readonly window: number;
  readonly limit: number;
  readonly used: number;
  readonly estimated: boolean;
  readonly share: number | null;
  readonly free: number | null;
  readonly clear_at: number;
  readonly summarize_at: number;
  readonly policy: string;
  readonly compactions: number;
  readonly strikes: number;
  readonly paused: boolean;
  readonly summarizing: boolean;
  readonly parts: readonly (ContextUsage)[];
  readonly cost: number | null;
}

/** The tokens of a request that are for one thing. */
export interface ContextUsage {
  readonly kind: ContextKind;
  readonly tokens: number;
}

/** Usage of one agent on one day. */
export interface DailyUsage {
  readonly day: string;
  readonly agent: string;
  readonly spent: Spent;
}

/** A message a plugin has deferred until every plugin is done with the step. */
export interface DeferredMessage {
  readonly message: Message;
  readonly priority?: number;
  readonly request?: boolean;
}

/** Deliveries of a webhook, newest first. */
export interface DeliveryList {
  readonly deliveries: readonly (DeliveryView)[];
}

/** An event that a webhook is told of. `id` is the header `webhook-id`. */
export interface DeliveryView {
  readonly id: string;
  readonly session: string;
  readonly seq: number;
  readonly type: string;
  readonly at: number;
  readonly state: "dead" | "delivered" | "pending";
  readonly due: number | null;
  readonly tries: number;
  readonly status: number;
  readonly problem: string;
  readonly updated: number;
}

/** A past call that a draft decides otherwise, in a conversation that the caller may see. */
export interface DryRunExample {
  readonly session: string;
  readonly turn: string;
  readonly title: string;
  readonly at: number;
  readonly arguments: string;
  readonly recorded: "allow" | "ask" | "deny";
  readonly rule: RuleView | null;
}

/** Past calls of a tool that a draft decides otherwise. */
export interface DryRunGroup {
  readonly tool: string;
  readonly before: "allow" | "ask" | "deny";
  readonly after: "allow" | "ask" | "deny";
  readonly count: number;
  readonly private: number;
  readonly loosens: boolean;
  readonly examples: readonly (DryRunExample)[];
}

/** A draft of the stored rules, to be compared with those in effect over the last `calls` calls of the tenant. */
export interface DryRunRules {
  readonly rules: readonly (StoredRule)[];
  readonly calls?: number;
}

/** What a draft of the rules would have decided about the last calls of the tenant. Nothing was run. */
export interface DryRunView {
  readonly calls: number;
  readonly skipped: number;
  readonly since: number;
  readonly groups: readonly (DryRunGroup)[];
  readonly changes: readonly (RuleChangeView)[];
  readonly hidden_below: number;
}

/** A new version of a user message, and an answer to it. */
export interface EditMessage {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly contexts?: readonly (AttachedContext)[] | null;
  readonly model?: string;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
  readonly at_step_limit?: "answer" | "ask";
}

/** The body of every error response. */
export interface ErrorResponse {
  readonly error: ErrorView;
}

/** An error: a stable code, a text for people that says what to do next, and the path of an invalid value. */
export interface ErrorView {
  readonly code: string;
  readonly message: string;
  readonly where: string;
}

/** Explain what the rules would decide about a call. Nothing is run. */
export interface ExplainCall {
  readonly tool: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly agent?: string;
  readonly session?: string | null;
}

/** Explain what a draft of the stored rules would decide about a call. Nothing is run. */
export interface ExplainDraft {
  readonly rules: readonly (StoredRule)[];
  readonly tool: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly agent?: string;
}

/** The decision about a call, the rule that makes it, and the other rules that match. */
export interface ExplainView {
  readonly action: "allow" | "ask" | "deny";
  readonly reason: string;
  readonly rule: RuleView | null;
  readonly is_final: boolean;
  readonly cases: readonly (CaseView)[];
  readonly others: readonly (RuleView)[];
  readonly lines: readonly (string)[];
  readonly problem: string;
  readonly manual: boolean;
  readonly review: string;
  readonly warnings: readonly (string)[];
}

/** A changed file: the kind of change, and the lines added and removed. */
export interface FileChange {
  readonly path: string;
  readonly kind: "added" | "deleted" | "modified";
  readonly added?: number;
  readonly removed?: number;
}

/** A file in a message, by reference to a blob: an attachment of a user, or a file that a model or tool made. */
export interface FilePart {
  readonly type: "file";
  readonly blob: string;
  readonly media_type: string;
  readonly size: number;
  readonly name?: string;
  readonly text?: string;
  readonly pages?: number;
}

/** A file is uploaded to a provider, to be named by reference in requests. `started` is written before the upload. */
export interface FileUploadChanged {
  readonly type: "FileUploadChanged";
  readonly at?: number;
  readonly turn: string;
  readonly upload: string;
  readonly state: "gone" | "ready" | "refused" | "started";
  readonly blob: string;
  readonly account: string;
  readonly reference?: string;
  readonly expires?: number;
}

/** A stored file. `file` is its handle in a message, valid for this tenant only. */
export interface FileView {
  readonly file: string;
  readonly part: FilePart;
  readonly problem: string;
}

/** Files under a root changed in a step; "" is the session's own root, where each call records its changes. */
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

/** The files that a step changed, with the trees before and after it. "" is the session's own root. */
export interface FilesPart {
  readonly type: "files";
  readonly step: number;
  readonly before: string;
  readonly after: string;
  readonly changes?: readonly (FileChange)[];
  readonly root?: string;
}

/** Files were restored; `before` is the tree before the revert, so that it can be undone. */
export interface FilesReverted {
  readonly type: "FilesReverted";
  readonly at?: number;
  readonly root: string;
  readonly before: string;
  readonly after: string;
  readonly by?: string;
  readonly command?: string;
}

/** What the authorization server of an MCP server gave to the caller's browser. */
export interface FinishMcpLogin {
  readonly state: string;
  readonly code?: string;
  readonly error?: string;
  readonly iss?: string | null;
}

/** A model, agent or key that a file or the environment defines; it cannot be changed on the page. */
export interface FixedSettingView {
  readonly kind: "agent" | "hook" | "key" | "mcp" | "model" | "rules";
  readonly name: string;
  readonly value: string;
  readonly where: string;
}

/** A slash command that a file defines: `text` is what it sends, with `$ARGUMENTS` and `$1` for its arguments. */
export interface FolderCommand {
  readonly name: string;
  readonly text: string;
  readonly description: string;
  readonly hint: string;
  readonly source: string;
}

/** A folder that the server of a terminal has open: its agent, and notes about what is missing or risky. */
export interface FolderView {
  readonly agent: string;
  readonly root: string;
  readonly label: string;
  readonly mode: "" | "ask" | "auto_edit" | "plan";
  readonly notes: readonly (string)[];
  readonly session: string;
  readonly commands: readonly (FolderCommand)[];
  readonly skills: readonly (string)[];
  readonly subagents: readonly (string)[];
}

/** Continue inside an answer: its steps up to this one are copied beside it, and the next message follows the copy. */
export interface ForkAnswer {
  readonly step: number;
}

/** A place inside an answer: behind one of its finished steps. */
export interface ForkPoint {
  readonly message: string;
  readonly step: number;
}

/** The copy of an answer up to one of its steps, at the end of the branch that is selected now. */
export interface ForkedAnswer {
  readonly message: string;
}

/** A question to a person or a client, bound by `hash` to the exact bytes that would be executed. */
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
  readonly fingerprint?: string;
  readonly preview?: string;
  readonly base_version?: string;
  readonly form?: string;
  readonly once?: boolean;
  readonly lease?: number;
  readonly folder?: string;
}

/** A page of open gates, oldest first, and the cursor of the next page; "": this is the last page. */
export interface GateList {
  readonly gates: readonly (GateView)[];
  readonly next: string;
}

/** A call, a tool or a plugin opened a gate. */
export interface GateOpened {
  readonly type: "GateOpened";
  readonly at?: number;
  readonly turn: string;
  readonly gate: Gate;
}

/** The answer to a gate: allow (with `arguments`, if they were edited), or deny (with a `reason` that the model */
export interface GateResolution {
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
  readonly stop?: boolean;
  readonly within?: "" | "folder" | "user";
}

/** An authorised person or client resolved a gate. A gate is resolved at most once. */
export interface GateResolved {
  readonly type: "GateResolved";
  readonly at?: number;
  readonly turn: string;
  readonly gate: string;
  readonly call: string;
  readonly resolution: GateResolution;
  readonly command?: string;
  readonly grant?: Grant | null;
}

/** An open gate: its session, since when it is open, and the claim of a client, if any. */
export interface GateView {
  readonly session: string;
  readonly title: string;
  readonly opened: number;
  readonly gate: Gate;
  readonly claim: CallClaim | null;
}

/** Get a prompt of an MCP server, with its arguments filled in. */
export interface GetMcpPrompt {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, string>>;
}

/** A remembered approval. */
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
  readonly folder?: string;
}

/** Grants, newest first. */
export interface GrantList {
  readonly grants: readonly (GrantView)[];
}

/** A grant was revoked. */
export interface GrantRevoked {
  readonly type: "GrantRevoked";
  readonly at?: number;
  readonly grant: string;
  readonly by?: string;
  readonly command?: string;
}

/** A grant, the session it was given in, and the title of the session that it covers. */
export interface GrantView {
  readonly grant: Grant;
  readonly origin: string;
  readonly title: string;
}

/** The last calls of a hook, newest first. Of those that did nothing, one a minute is listed. */
export interface HookCallList {
  readonly calls: readonly (HookCallView)[];
}

/** A call of a hook: the turn that it started, or why it did nothing. */
export interface HookCallView {
  readonly at: number;
  readonly outcome: "answered" | "completed" | "ignored" | "refused" | "repeated" | "started";
  readonly session: string;
  readonly turn: string;
  readonly reason: string;
}

/** A plugin is done with a step, and deferred these messages. */
export interface HookFinished {
  readonly type: "HookFinished";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly plugin: string;
  readonly deferred?: readonly (DeferredMessage)[];
}

/** The inbound hooks of a tenant, by name. `problem` says why the caller can create none; "": they can. */
export interface HookList {
  readonly hooks: readonly (HookView)[];
  readonly problem: string;
}

/** What became of a delivery to an inbound hook. `is_new` is false for one that was received before. */
export interface HookReceiptView {
  readonly outcome: "answered" | "challenge" | "completed" | "ignored" | "started";
  readonly session: string;
  readonly turn: string;
  readonly is_new: boolean;
}

/** An inbound hook: other systems deliver signed requests at its path. Its secret is never shown. */
export interface HookView {
  readonly name: string;
  readonly path: string;
  readonly scheme: "github" | "slack" | "standard";
  readonly action: "answer" | "complete" | "send";
  readonly agent: string;
  readonly session: string;
  readonly text: string;
  readonly by: string;
  readonly priority: "background" | "interactive";
  readonly max_bytes: number;
  readonly origin: "api" | "config";
  readonly when: Readonly<Record<string, readonly (string)[]>>;
  readonly fields: readonly (string)[];
  readonly version: number;
  readonly at: number;
  readonly problem: string;
}

/** A hook, and the secret that was made for it; "": the one that was there, or was entered. */
export interface HookWithSecret {
  readonly hook: HookView;
  readonly secret: string;
}

/** One message of the event stream of a tenant: first a snapshot, then changes. A missed message is harmless: every */
export interface InboxItem {
  readonly snapshot?: InboxView | null;
  readonly session?: SessionView | null;
  readonly waits?: readonly (GateView)[] | null;
  readonly end?: "" | "drain" | "revoked" | "slow";
}

/** The open gates and the active sessions. If `next` is set, the rest follows session by session. */
export interface InboxView {
  readonly gates: readonly (GateView)[];
  readonly awake: readonly (SessionView)[];
  readonly next: string;
}

/** A plugin refused a message of the user: no model reads this message, now or later. */
export interface InputRefused {
  readonly type: "InputRefused";
  readonly at?: number;
  readonly turn: string;
  readonly message: string;
  readonly text: string;
  readonly by?: string;
}

/** A part of the system prompt. `text` is "" for a part of the configuration, unless an operator asks. */
export interface InstructionLayer {
  readonly layer: string;
  readonly text: string;
  readonly size: number;
}

/** A function among the instructions of an agent. */
export interface InstructionsFunction {
  readonly function: string;
  readonly each_step: boolean;
}

/** A person set the instructions of the session, for the turns that start with later messages; "" removes them. */
export interface InstructionsSet {
  readonly type: "InstructionsSet";
  readonly at?: number;
  readonly text: string;
  readonly by?: string;
  readonly command?: string;
}

/** The parts of the system prompt of the next turn that are not empty, in the order in which they are sent. */
export interface InstructionsView {
  readonly layers: readonly (InstructionLayer)[];
}

/** Invitations, newest first. `passwords`: whether people set a password when they accept one. */
export interface InvitationList {
  readonly invitations: readonly (InvitationView)[];
  readonly passwords: "missing" | "off" | "on";
}

/** An invitation, or a link that resets a password, without its secret. */
export interface InvitationView {
  readonly id: string;
  readonly kind: "invitation" | "reset";
  readonly user: string;
  readonly name: string;
  readonly role: Role;
  readonly by: string;
  readonly created: number;
  readonly expires: number;
  readonly used: number;
  readonly revoked: number;
}

/** Credentials, oldest first. */
export interface KeyList {
  readonly keys: readonly (KeyView)[];
}

/** The API key of a vendor, as it is shown: never the key itself. */
export interface KeySettings {
  readonly last_four?: string;
  readonly fingerprint?: string;
}

/** What a vendor said to a key: its models, or what went wrong. */
export interface KeyTestView {
  readonly models: readonly (string)[];
  readonly problem: string;
  readonly is_refused: boolean;
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
  readonly used: number;
}

/** A tool finished after its call was cancelled; the result is kept beside the call. */
export interface LateResultReceived {
  readonly type: "LateResultReceived";
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

/** What a branch has shown about the sizes of a model's requests, carried from one summary to the next. */
export interface LearnedSize {
  readonly model: string;
  readonly weight?: number;
  readonly limit?: number;
}

/** A budget is used up, or a person denied a loop: no further call starts, and the next request is the last. */
export interface LimitReached {
  readonly type: "LimitReached";
  readonly at?: number;
  readonly turn: string;
  readonly limit: string;
  readonly scope: "parent" | "session" | "tenant" | "turn";
  readonly text: string;
}

/** The ancestry of a sub-agent run, and the limits it inherits from its ancestors. */
export interface Lineage {
  readonly session: string;
  readonly turn: string;
  readonly depth?: number;
  readonly left?: Budget;
  readonly until?: number;
  readonly ancestors?: readonly (TurnPermissions)[];
  readonly recent_calls?: readonly (string)[];
  readonly untrusted?: boolean;
  readonly private?: boolean;
  readonly by?: readonly [string, string, string];
  readonly is_detached?: boolean;
}

/** A new link. `link` is its secret, which is shown once. */
export interface LinkView {
  readonly share: ShareView;
  readonly link: string;
}

/** An event at its position in the log. */
export interface LogItem {
  readonly seq: number;
  readonly event: LogEvent;
}

/** A page of a session's log, in order; `is_whole`: this is the last page, and a stream continues `after` its `seq`. */
export interface LogPage {
  readonly entries: readonly (LogItem)[];
  readonly is_whole: boolean;
}

/** The last turns of a session's log, each from its first event to its last; a stream continues `after` its `seq`. */
export interface LogTail {
  readonly entries: readonly (LogItem)[];
  readonly start: number;
  readonly seq: number;
  readonly leaf: string | null;
  readonly title: string;
  readonly cost: number | null;
}

/** Who a browser is logged in as; the response sets its cookie. */
export interface LoggedIn {
  readonly tenant: string;
  readonly user: string;
}

/** The URL at which a person logs in: in their own browser if it `returns` to the web UI, else in one on the server's */
export interface LoginView {
  readonly address: string;
  readonly returns: boolean;
}

/** A session that is on the screen, or a gate of it. */
export interface LookAt {
  readonly session: string;
  readonly gate?: string;
}

/** What a tab shows now. Repeat it every five seconds: a look that is not repeated ends after ten. */
export interface Looking {
  readonly tab: string;
  readonly at: readonly (LookAt)[];
  readonly has_left?: boolean;
}

/** What a prompt or a resource contains, for the `contexts` and `files` of a message. Its text is untrusted. */
export interface McpContent {
  readonly contexts: readonly (AttachedContext)[];
  readonly files: readonly (FileView)[];
}

/** MCP servers, as they are configured. */
export interface McpList {
  readonly servers: readonly (McpView)[];
}

/** The server that the caller is now logged in to; "": another process completes the login. */
export interface McpLoginEnd {
  readonly server: string;
}

/** Who of the tenant is logged in to an MCP server: ids of users, and nothing else of their logins. */
export interface McpLogins {
  readonly login: "shared" | "user";
  readonly users: readonly (string)[];
}

/** The prompts and resources of the MCP servers that are connected. */
export interface McpOffers {
  readonly prompts: readonly (McpPromptView)[];
  readonly resources: readonly (McpResourceView)[];
}

/** An argument of a prompt; its value is a text. */
export interface McpPromptArgument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
}

/** A prompt of an MCP server: `/server:name` is its command. The texts are the server's. */
export interface McpPromptView {
  readonly server: string;
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly (McpPromptArgument)[];
}

/** A resource of an MCP server: `@server:uri` attaches it. The texts are the server's. */
export interface McpResourceView {
  readonly server: string;
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly media_type: string;
}

/** An MCP server that an administrator added; the values of its headers or variables are never shown. */
export interface McpSettingsView {
  readonly name: string;
  readonly version: number;
  readonly by: string;
  readonly at: number;
  readonly problem: string;
  readonly url: string;
  readonly program: string;
  readonly auth: "none" | "oauth";
  readonly login: "" | "shared" | "user";
  readonly values: readonly (string)[];
  readonly trusted: number;
  readonly server: McpView | null;
}

/** A tool of an MCP server. */
export interface McpToolView {
  readonly name: string;
  readonly description: string;
  readonly is_changed: boolean;
}

/** An MCP server, as this node sees it. Of the fields after `tools`, users below operator see only the */
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
  readonly is_stored: boolean;
  readonly login: "" | "shared" | "user";
  readonly is_logged_in: boolean;
  readonly logged_in_as: string;
  readonly logged_in_since: number;
}

/** The authenticated user. */
export interface Me {
  readonly tenant: string;
  readonly user: string;
  readonly role: Role;
  readonly version: string;
  readonly csrf: string;
}

/** A memory file. */
export interface MemoryFileView {
  readonly file: MemoryInfoView;
  readonly text: string;
}

/** A memory file in a list. The path is relative to `/memories`. */
export interface MemoryInfoView {
  readonly path: string;
  readonly size: number;
  readonly hash: string;
  readonly updated: number;
  readonly untrusted: boolean;
}

/** The memory files of the caller, by path, and how many bytes all of them, and one of them, may have. */
export interface MemoryList {
  readonly files: readonly (MemoryInfoView)[];
  readonly limit: number;
  readonly file_limit: number;
}

/** A message of a conversation: a message of a user, an answer of a model, or a message that a plugin appended. */
export interface Message {
  readonly id: string;
  readonly parent: string | null;
  readonly role: MessageRole;
  readonly parts?: readonly (Part)[];
  readonly by?: string;
  readonly turn?: string;
  readonly hidden?: boolean;
  readonly imported?: boolean;
  readonly refused?: boolean;
  readonly fork?: ForkPoint | null;
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

/** A branch, or its last page, oldest first, and the cursor of the page before it; "": there is none. */
export interface MessageList {
  readonly messages: readonly (Message)[];
  readonly next: string;
  readonly ratings: readonly (RatingView)[];
}

/** A durable message, and the turn that it starts. */
export interface MessageReceipt {
  readonly session: string;
  readonly turn: string;
  readonly message: string;
  readonly is_new: boolean;
  readonly compared: readonly (string)[];
}

/** A user message: a text, files that were uploaded before, or both, with options for its turn. */
export interface MessageRequest {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly contexts?: readonly (AttachedContext)[];
  readonly agent?: string;
  readonly model?: string;
  readonly compare_with?: readonly (string)[];
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly tools?: readonly (string)[] | null;
  readonly tool_history?: "digest" | "full" | "none" | "results" | null;
  readonly context?: string | null;
  readonly late?: "discard" | "inject" | "keep" | null;
  readonly max_steps?: number | null;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
  readonly at_step_limit?: "answer" | "ask";
  readonly clients?: readonly (ClientTool)[];
  readonly busy?: "fork" | "queue" | "reject" | "steer";
  readonly priority?: "background" | "interactive" | null;
  readonly at?: number;
}

/** A conversation that was held elsewhere was added, each message after the one before it, and selected. */
export interface MessagesImported {
  readonly type: "MessagesImported";
  readonly at?: number;
  readonly messages: readonly (Message)[];
  readonly title?: string;
  readonly by?: string;
  readonly command?: string;
}

/** The API key of a vendor, without the key: its last four characters, a fingerprint, who stored it and when. */
export interface ModelKeyView {
  readonly vendor: string;
  readonly last_four: string;
  readonly fingerprint: string;
  readonly by: string;
  readonly at: number;
  readonly problem: string;
}

/** A model that is offered. With a `base_url`, a server that is compatible with OpenAI, with a key of its own. */
export interface ModelSettings {
  readonly model: string;
  readonly base_url?: string;
  readonly window?: number | null;
  readonly tool_format?: "" | "blocks" | "json" | "xml";
  readonly offered?: boolean;
  readonly key?: KeySettings | null;
}

/** A model that an administrator offers; `problem` says why it is not in use. */
export interface ModelSettingsView {
  readonly name: string;
  readonly version: number;
  readonly by: string;
  readonly at: number;
  readonly problem: string;
  readonly settings: ModelSettings;
}

/** An available model source: an API key in the environment, or a model server on this machine. */
export interface ModelSource {
  readonly kind: "key" | "server";
  readonly name: string;
  readonly address: string;
  readonly models: readonly (string)[];
  readonly toml: string;
  readonly needs_restart: boolean;
}

/** A model that one of the agents may use. */
export interface ModelView {
  readonly name: string;
  readonly badge: string;
  readonly context: number;
  readonly vendor: string;
  readonly input_price: number | null;
  readonly output_price: number | null;
  readonly inputs: readonly (string)[] | null;
  readonly has_native_tools: boolean | null;
  readonly has_temperature: boolean | null;
  readonly reasoning_levels: readonly (string)[] | null;
}

/** A running tool made a call of its own: it passes the same rules and gates as any call, and no model sees it. */
export interface NestedCallRequested {
  readonly type: "NestedCallRequested";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly parent: string;
  readonly name: string;
  readonly arguments: string;
  readonly identity?: string;
}

/** An agent. `version` is the one that was seen, 0 for a new agent. */
export interface NewAgentSettings {
  readonly settings: AgentSettings;
  readonly version?: number | null;
}

/** An inbound hook that starts turns, with the authority of the caller. */
export interface NewHook {
  readonly scheme: "github" | "slack" | "standard";
  readonly text: string;
  readonly agent?: string;
  readonly session?: string;
  readonly when?: Readonly<Record<string, readonly (string)[]>>;
  readonly fields?: readonly (string)[];
  readonly secret?: string;
  readonly version?: number | null;
}

/** A new secret; "": one is made. */
export interface NewHookSecret {
  readonly secret?: string;
}

/** Invite a person: the link works once, and creates this user with this role. */
export interface NewInvitation {
  readonly user: string;
  readonly name?: string;
  readonly role?: Role;
  readonly hours?: number;
}

/** A new invitation. Its secret is shown only in this response; the link is `{server}/#/invite/{secret}`. */
export interface NewInvitationView {
  readonly id: string;
  readonly kind: "invitation" | "reset";
  readonly user: string;
  readonly name: string;
  readonly role: Role;
  readonly by: string;
  readonly created: number;
  readonly expires: number;
  readonly used: number;
  readonly revoked: number;
  readonly secret: string;
}

/** Create an API key for a user of the tenant, limited to this role. */
export interface NewKey {
  readonly name?: string;
  readonly user?: string;
  readonly role?: Role;
  readonly expires?: number;
}

/** A new key. Its secret is shown only in this response. */
export interface NewKeyView {
  readonly id: string;
  readonly user: string;
  readonly kind: "key" | "link" | "login";
  readonly name: string;
  readonly role: Role;
  readonly created: number;
  readonly expires: number;
  readonly revoked: number;
  readonly used: number;
  readonly secret: string;
}

/** Create a read-only link to a session, for the users of the tenant. */
export interface NewLink {
  readonly expires?: number;
}

/** An MCP server: a `url` or a `program`. `values` are those of its headers or variables; all "" keeps the ones stored. */
export interface NewMcpSettings {
  readonly url?: string;
  readonly program?: string;
  readonly auth?: "none" | "oauth";
  readonly login?: "" | "shared" | "user";
  readonly values?: Readonly<Record<string, string>>;
  readonly version?: number | null;
}

/** A message at the end of the selected branch, or `after` another message. */
export interface NewMessage {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly contexts?: readonly (AttachedContext)[];
  readonly agent?: string;
  readonly model?: string;
  readonly compare_with?: readonly (string)[];
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly tools?: readonly (string)[] | null;
  readonly tool_history?: "digest" | "full" | "none" | "results" | null;
  readonly context?: string | null;
  readonly late?: "discard" | "inject" | "keep" | null;
  readonly max_steps?: number | null;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
  readonly at_step_limit?: "answer" | "ask";
  readonly clients?: readonly (ClientTool)[];
  readonly busy?: "fork" | "queue" | "reject" | "steer";
  readonly priority?: "background" | "interactive" | null;
  readonly at?: number;
  readonly after?: string | null;
}

/** The API key of a vendor. */
export interface NewModelKey {
  readonly key: string;
}

/** A model. `version` is the one that was seen, 0 for a new model; `key` is that of its base_url, "" keeps the one stored. */
export interface NewModelSettings {
  readonly settings: ModelSettings;
  readonly version?: number | null;
  readonly key?: string;
}

/** A push subscription of a browser: its endpoint and keys, as `PushSubscription.toJSON()` has them. */
export interface NewPushSubscription {
  readonly endpoint: string;
  readonly p256dh: string;
  readonly auth: string;
  readonly key: string;
  readonly language?: "en" | "zh";
  readonly label?: string;
  readonly site?: string;
}

/** All stored rules. `version` is the one that was seen, 0 before the first. */
export interface NewRuleSettings {
  readonly rules: readonly (StoredRule)[];
  readonly version?: number | null;
}

/** A new schedule. The same `id` with the same definition is the same schedule. */
export interface NewSchedule {
  readonly text: string;
  readonly cron?: string;
  readonly at?: number;
  readonly timezone?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly catch_up?: "all" | "once" | "skip";
  readonly max_catch_up?: number;
  readonly overlap?: "queue" | "skip";
  readonly until?: number;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly priority?: "background" | "interactive";
  readonly id?: string;
}

/** Start a session with its first message. A session has at least one message. */
export interface NewSession {
  readonly text?: string;
  readonly files?: readonly (string)[];
  readonly contexts?: readonly (AttachedContext)[];
  readonly agent?: string;
  readonly model?: string;
  readonly compare_with?: readonly (string)[];
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly tools?: readonly (string)[] | null;
  readonly tool_history?: "digest" | "full" | "none" | "results" | null;
  readonly context?: string | null;
  readonly late?: "discard" | "inject" | "keep" | null;
  readonly max_steps?: number | null;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
  readonly at_step_limit?: "answer" | "ask";
  readonly clients?: readonly (ClientTool)[];
  readonly busy?: "fork" | "queue" | "reject" | "steer";
  readonly priority?: "background" | "interactive" | null;
  readonly at?: number;
  readonly parameters?: SessionParameters | null;
  readonly temporary?: boolean;
}

/** Share a session with a user, or with everybody who has at least a role. */
export interface NewShare {
  readonly user?: string;
  readonly role?: Role | null;
  readonly level?: "read" | "write";
  readonly expires?: number;
}

/** A URL that is to be told of events; without `events`, of all. */
export interface NewWebhook {
  readonly url: string;
  readonly events?: readonly ("gate.opened" | "gate.resolved" | "turn.cancelled" | "turn.completed" | "turn.failed")[];
  readonly description?: string;
}

/** The notices that the caller has not dismissed, oldest first. */
export interface NoticeList {
  readonly notices: readonly (NoticeView)[];
}

/** A message of the runtime or a plugin to the model; never a person's text. */
export interface NoticePart {
  readonly type: "notice";
  readonly kind: string;
  readonly text: string;
  readonly untrusted?: boolean;
}

/** An administrator opened a conversation of the caller. */
export interface NoticeView {
  readonly id: string;
  readonly session: string;
  readonly title: string;
  readonly by: string;
  readonly reason: string;
  readonly at: number;
  readonly expires: number;
}

/** A provider's opaque payload (a signature, encrypted reasoning), to be replayed to its issuer only. */
export interface Opaque {
  readonly issuer: string;
  readonly data: string;
}

/** Read a private session for a short time; its author is told the reason. */
export interface OpenAsAdministrator {
  readonly reason: string;
  readonly minutes?: number;
}

/** Open a folder of this machine: its agent works there. */
export interface OpenFolder {
  readonly path: string;
  readonly key?: string;
}

/** Look at an invitation before it is used. */
export interface OpenInvitation {
  readonly token: string;
}

/** Open a link. */
export interface OpenLink {
  readonly link: string;
}

/** What an invitation is for. */
export interface OpenedInvitation {
  readonly kind: "invitation" | "reset";
  readonly tenant: string;
  readonly user: string;
  readonly name: string;
  readonly passwords: "missing" | "off" | "on";
  readonly min_length: number;
}

/** The session that a link leads to. */
export interface OpenedLink {
  readonly session: string;
}

/** The result of a call. `text` is exactly what the model reads; `blob` holds the whole if `text` is an excerpt. */
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

/** The answer of a step is not a valid output: the step finishes without parts, and the next step */
export interface OutputRejected {
  readonly type: "OutputRejected";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly parts: readonly (StreamedPart)[];
  readonly problem: string;
}

/** Log a browser in with a password. */
export interface PasswordLogin {
  readonly user: string;
  readonly password: string;
  readonly tenant?: string;
}

/** Rename, pin, archive or label a session, or choose its parameters. A field that is left out stays as it is. */
export interface PatchSession {
  readonly title?: string | null;
  readonly pinned?: boolean | null;
  readonly archived?: boolean | null;
  readonly labels?: readonly (string)[] | null;
  readonly parameters?: SessionParameters | null;
}

/** What of a webhook is changed; what is left out stays, and so does its secret. */
export interface PatchWebhook {
  readonly url?: string | null;
  readonly events?: readonly ("gate.opened" | "gate.resolved" | "turn.cancelled" | "turn.completed" | "turn.failed")[] | null;
  readonly description?: string | null;
  readonly is_paused?: boolean | null;
}

/** The users of the tenant, by id. */
export interface PeopleList {
  readonly people: readonly (PersonView)[];
}

/** The rules, or a person at a gate, decided about a call. It precedes every `CallStarted`, in the same append. */
export interface PermissionDecided {
  readonly type: "PermissionDecided";
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
  readonly fingerprint?: string;
}

/** A user whom a conversation can be shared with. */
export interface PersonView {
  readonly id: string;
  readonly name: string;
}

/** The phase of a turn, as clients see it. Each phase is announced before its work starts. */
export type Phase = "cancelled" | "completed" | "error" | "finalizing" | "idle" | "preparing" | "streaming" | "tool_call" | "waiting";

/** When a schedule is to run, to see its next planned times before it is stored. */
export interface PlanSchedule {
  readonly cron: string;
  readonly timezone?: string;
  readonly until?: number;
}

/** The next planned times, the first one first, or why there are none. */
export interface PlannedTimes {
  readonly times: readonly (number)[];
  readonly problem: string;
}

/** Who else looks at what the caller looks at. */
export interface PresenceView {
  readonly viewers: readonly (ViewerView)[];
}

/** Why a turn failed, or what a plugin's hook reported: a stable `kind` and a text for people. */
export interface Problem {
  readonly kind: string;
  readonly text: string;
  readonly phase?: "" | "finalize" | "prepare" | "request" | "stream" | "tools";
}

/** A program that the configuration file offers to administrators, and the variables that it takes. */
export interface ProgramView {
  readonly name: string;
  readonly variables: readonly (string)[];
}

/** The system prompt by layers, in the order in which they are sent. `header` never changes, for the provider's cache. */
export interface Prompt {
  readonly header?: string;
  readonly model?: string;
  readonly agent?: string;
  readonly workspace?: string;
  readonly shared?: string;
  readonly custom?: string;
  readonly user?: string;
  readonly session?: string;
  readonly privacy?: string;
  readonly timezone?: string;
}

/** An argument of a saved prompt; without a default, the person has to give a value. */
export interface PromptArgumentView {
  readonly name: string;
  readonly description?: string;
  readonly default?: string | null;
}

/** Saved prompts, by name. Of two with one name there is the caller's, or else the tenant's. */
export interface PromptList {
  readonly prompts: readonly (PromptView)[];
}

/** A saved prompt. */
export interface PromptView {
  readonly name: string;
  readonly text: string;
  readonly description: string;
  readonly arguments: readonly (PromptArgumentView)[];
  readonly scope: "config" | "shared" | "user";
}

/** A call of a tool that the provider ran, its result, or both in one, as the provider sent it. */
export interface ProviderToolPart {
  readonly type: "provider_tool";
  readonly name: string;
  readonly state?: "called" | "completed" | "failed";
  readonly id?: string;
  readonly title?: string;
  readonly text?: string;
  readonly opaque?: Opaque | null;
}

/** A browser that is told of approvals. */
export interface PushSubscriptionView {
  readonly id: string;
  readonly label: string;
  readonly created: number;
  readonly credential: string;
}

/** The public key to subscribe with, base64url ("": there is no push), and the browsers of the caller. */
export interface PushView {
  readonly key: string;
  readonly subscriptions: readonly (PushSubscriptionView)[];
}

/** Write the instructions of the caller, for all their sessions; with `shared` of the tenant. "" removes them. */
export interface PutInstructions {
  readonly text: string;
  readonly shared?: boolean;
}

/** Write a whole memory file of the caller. `base` is the hash that was read, `none` for a new file; "": any. */
export interface PutMemory {
  readonly path: string;
  readonly text: string;
  readonly base?: string;
  readonly untrusted?: boolean | null;
}

/** Write a saved prompt of the caller; with `shared` of the tenant, which takes an owner. */
export interface PutPrompt {
  readonly name: string;
  readonly text: string;
  readonly description?: string;
  readonly arguments?: readonly (PromptArgumentView)[];
  readonly shared?: boolean;
}

/** Rate an answer up or down; "" withdraws the caller's rating. */
export interface PutRating {
  readonly rating: "" | "down" | "up";
  readonly reason?: string;
}

/** Set the instructions of a session, for the messages that are sent from now on. "" removes them. */
export interface PutSessionInstructions {
  readonly text: string;
}

/** Create or update a tenant. */
export interface PutTenant {
  readonly name?: string;
  readonly is_active?: boolean;
}

/** Create or update a user. */
export interface PutUser {
  readonly name?: string;
  readonly role?: Role;
  readonly is_active?: boolean;
  readonly origin?: string | null;
}

/** Limit what a user may use in a period; 0 is no limit. */
export interface PutUserBudget {
  readonly steps?: number;
  readonly calls?: number;
  readonly tokens?: number;
  readonly cost?: number;
  readonly period?: number;
}

/** Quarantined sessions, oldest first, and how long sessions are kept. */
export interface QuarantineList {
  readonly sessions: readonly (QuarantinedSession)[];
  readonly retention_days: number;
  readonly temporary_hours: number;
}

/** A quarantined session: no title and no text, because it may be private. */
export interface QuarantinedSession {
  readonly id: string;
  readonly by: string;
  readonly agent: string;
  readonly created: number;
  readonly updated: number;
  readonly reason: string;
  readonly open_turns: number;
}

/** The queued messages, in the order in which they will be sent. */
export interface QueueList {
  readonly queued: readonly (QueuedView)[];
}

/** A message that waits until the turn before it is over. If its turn is cancelled first, it is never sent. */
export interface QueuedView {
  readonly turn: string;
  readonly message: string;
  readonly at: number;
  readonly text: string;
  readonly files: readonly (FilePart)[];
  readonly by: string;
  readonly steers: string;
}

/** What a person wrote in a message that a summary replaces, word for word. */
export interface Quote {
  readonly message: string;
  readonly text: string;
}

/** How a person rated an answer. */
export interface RatingView {
  readonly message: string;
  readonly rating: "" | "down" | "up";
  readonly reason: string;
  readonly by: string;
  readonly at: number;
}

/** Read a resource of an MCP server. */
export interface ReadMcpResource {
  readonly uri: string;
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

/** The model's reasoning. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly opaque?: Opaque | null;
}

/** Regenerate an answer; with `after_step` its steps up to this one stay, and the model continues there. */
export interface RegenerateAnswer {
  readonly after_step?: number;
  readonly model?: string;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
  readonly at_step_limit?: "answer" | "ask";
  readonly params?: Readonly<Record<string, unknown>> | null;
}

/** Which deliveries are sent again: all dead ones, or that of one event. */
export interface ReplayDeliveries {
  readonly session?: string;
  readonly seq?: number;
}

/** How many deliveries are sent again. */
export interface ReplayedDeliveries {
  readonly count: number;
}

/** A model request failed before any content arrived; after `seconds` it is sent again, to the same model or another. */
export interface RequestRetried {
  readonly type: "RequestRetried";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly attempt: number;
  readonly attempts: number;
  readonly problem: Problem;
  readonly seconds?: number;
  readonly model?: string;
}

/** The version to restore. */
export interface RestoreVersion {
  readonly version: number;
}

/** Revert files: `tree` is the `before` or the `after` of a files part, or of an earlier revert. */
export interface RevertFiles {
  readonly root: string;
  readonly tree: string;
}

/** A revert is about to start; `before` is the present tree, `after` the one to restore. */
export interface RevertStarted {
  readonly type: "RevertStarted";
  readonly at?: number;
  readonly root: string;
  readonly before: string;
  readonly after: string;
  readonly key: string;
}

/** The result of a revert. */
export interface RevertView {
  readonly reverted: FilesReverted;
}

/** A permission rule: the action for calls of this tool whose values match. */
export interface Rule {
  readonly tool: string;
  readonly action: "allow" | "ask" | "deny";
  readonly match?: Readonly<Record<string, string>>;
  readonly layer?: "agent" | "config" | "defaults" | "grants" | "session";
  readonly source?: string;
}

/** A rule that a draft adds or removes; `loosens`: it may allow what was asked about or denied. */
export interface RuleChangeView {
  readonly text: string;
  readonly is_added: boolean;
  readonly loosens: boolean;
  readonly is_idle: boolean;
}

/** A permission rule, as it is written in everturn.toml. */
export interface RuleRow {
  readonly tool: string;
  readonly action: string;
  readonly match: Readonly<Record<string, string>>;
}

/** One version of the stored rules; version 0 has none. `problem` says why they are not in use. */
export interface RuleSettingsView {
  readonly version: number;
  readonly by: string;
  readonly at: number;
  readonly problem: string;
  readonly rules: readonly (StoredRuleView)[];
}

/** The versions of the stored rules, newest first. */
export interface RuleVersionList {
  readonly versions: readonly (RuleSettingsView)[];
}

/** A rule in TOML, where it was set, and why it can never decide, if another rule shadows it. */
export interface RuleView {
  readonly rule: Rule;
  readonly text: string;
  readonly shadow: string;
  readonly scope: "" | "file" | "installation" | "tenant";
}

/** Everything that decides about the calls of an agent, except grants. */
export interface RulesView {
  readonly agent: string;
  readonly rules: readonly (RuleView)[];
  readonly tools: readonly (ToolRules)[];
}

/** A message that is sent at the planned times of a cron expression, or once `at` a time (seconds since 1970). */
export interface ScheduleDefinition {
  readonly text: string;
  readonly cron?: string;
  readonly at?: number;
  readonly timezone?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly catch_up?: "all" | "once" | "skip";
  readonly max_catch_up?: number;
  readonly overlap?: "queue" | "skip";
  readonly until?: number;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly priority?: "background" | "interactive";
}

/** A page of schedules, by id; `next` is the `after` of the next page ("": this is the last). */
export interface ScheduleList {
  readonly schedules: readonly (ScheduleView)[];
  readonly next: string;
}

/** A run of a schedule: its turn, or why there is none. */
export interface ScheduleRunView {
  readonly planned: number;
  readonly at: number;
  readonly session: string;
  readonly turn: string;
  readonly outcome: "refused" | "skipped" | "started";
  readonly problem: string;
}

/** A schedule, its next planned time (`due`; 0: none) and its last runs, newest first. */
export interface ScheduleView {
  readonly id: string;
  readonly text: string;
  readonly cron: string;
  readonly at: number;
  readonly timezone: string;
  readonly agent: string;
  readonly session: string;
  readonly catch_up: "all" | "once" | "skip";
  readonly max_catch_up: number;
  readonly overlap: "queue" | "skip";
  readonly until: number;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly priority: "background" | "interactive";
  readonly by: string;
  readonly created: number;
  readonly origin: "api" | "config";
  readonly is_paused: boolean;
  readonly due: number;
  readonly started: number;
  readonly missed: number;
  readonly runs: readonly (ScheduleRunView)[];
}

/** A search hit: a message, and the title of its top-level session. */
export interface SearchHit {
  readonly session: string;
  readonly message: Message;
  readonly title: string;
  readonly updated: number;
}

/** Search hits, newest first. */
export interface SearchResults {
  readonly results: readonly (SearchHit)[];
}

/** Select the branch that ends at a message; None: the beginning. */
export interface SelectBranch {
  readonly message?: string | null;
}

/** A message of a request. */
export interface SentMessage {
  readonly role: string;
  readonly parts: readonly (SentPart)[];
}

/** A part of a message of a request: its text, the arguments of a call, or the media type of a file. */
export interface SentPart {
  readonly kind: "call" | "file" | "notice" | "reasoning" | "result" | "text";
  readonly text: string;
  readonly name: string;
  readonly call: string;
  readonly size: number;
}

/** The request of a step, before it is rendered for a provider. System prompt and parameters: null below approver. */
export interface SentRequestView {
  readonly step: number;
  readonly model: string;
  readonly system: string | null;
  readonly params: Readonly<Record<string, unknown>> | null;
  readonly tools: readonly (SentTool)[];
  readonly messages: readonly (SentMessage)[];
  readonly left_out: readonly (string)[];
}

/** A tool that a request offers. */
export interface SentTool {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** The valid grants. */
export interface SessionGrantList {
  readonly grants: readonly (Grant)[];
}

/** A page of sessions, and the cursor of the next page; "": this is the last page. */
export interface SessionPage {
  readonly sessions: readonly (SessionView)[];
  readonly next: string;
  readonly waiting: readonly (string)[];
  readonly pinned: readonly (SessionView)[];
}

/** Parameters of a session; None, "" and 0 leave the choice to the agent. */
export interface SessionParameters {
  readonly temperature?: number | null;
  readonly max_tokens?: number;
  readonly reasoning?: "" | "high" | "low" | "max" | "medium" | "minimal" | "none" | "xhigh";
  readonly without_groups?: readonly (string)[];
}

/** A person renamed, pinned, archived or labelled the session, or chose its parameters; None: that was not changed. */
export interface SessionUpdated {
  readonly type: "SessionUpdated";
  readonly at?: number;
  readonly title?: string | null;
  readonly pinned?: boolean | null;
  readonly archived?: boolean | null;
  readonly labels?: readonly (string)[] | null;
  readonly parameters?: SessionParameters | null;
  readonly by?: string;
  readonly command?: string;
}

/** A session in a list. */
export interface SessionView {
  readonly id: string;
  readonly title: string;
  readonly agent: string;
  readonly by: string;
  readonly created: number;
  readonly updated: number;
  readonly leaf: string | null;
  readonly is_awake: boolean;
  readonly quarantined: string;
  readonly parent: string;
  readonly awaited_agent: string;
  readonly pinned: boolean;
  readonly archived: boolean;
  readonly labels: readonly (string)[];
  readonly is_renamed: boolean;
  readonly is_listed: boolean;
  readonly parameters: SessionParameters | null;
}

/** What administrators have set. `problem`: why nothing can be changed; `secret_problem`: why no key can be stored. */
export interface SettingsView {
  readonly is_editable: boolean;
  readonly problem: string;
  readonly secret_problem: string;
  readonly vendors: readonly (string)[];
  readonly fixed: readonly (FixedSettingView)[];
  readonly keys: readonly (ModelKeyView)[];
  readonly models: readonly (ModelSettingsView)[];
  readonly agents: readonly (AgentSettingsView)[];
  readonly mcp: readonly (McpSettingsView)[];
  readonly programs: readonly (ProgramView)[];
  readonly mcp_problem: string;
}

/** The configured model, and the other available model sources. */
export interface SetupView {
  readonly agent: string;
  readonly model: string;
  readonly is_offline: boolean;
  readonly file: string;
  readonly has_file: boolean;
  readonly has_agent: boolean;
  readonly options: readonly (ModelSource)[];
}

/** A permission to see a session: of a user, a role, a link, or an administrator who opened it. */
export interface ShareView {
  readonly id: string;
  readonly kind: "admin" | "link" | "role" | "user";
  readonly name: string;
  readonly level: "read" | "write";
  readonly by: string;
  readonly created: number;
  readonly expires: number;
  readonly reason: string;
  readonly via: string;
}

/** Who may see a session. `shares` is shown to its author only. */
export interface SharingView {
  readonly author: string;
  readonly level: "manage" | "read" | "write";
  readonly shares: readonly (ShareView)[];
  readonly temporary_until: number;
}

/** A text to speak, without Markdown. */
export interface SpeakText {
  readonly text: string;
}

/** Steps, calls and tokens that turns have used. */
export interface Spent {
  readonly steps?: number;
  readonly calls?: number;
  readonly usage?: Usage;
}

/** The step's stream completed with these parts. */
export interface StepFinished {
  readonly type: "StepFinished";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly parts: readonly (StreamedPart)[];
  readonly finish: Finish;
  readonly usage?: Usage;
  readonly model?: string;
  readonly first_chunk_at?: number;
  readonly refused?: string;
  readonly warning?: string;
  readonly continues?: boolean;
  readonly loops?: boolean;
  readonly cache?: CacheCollapse | null;
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
  readonly model?: string;
  readonly first_chunk_at?: number;
}

/** The end of a step, and its token usage. */
export interface StepPart {
  readonly type: "step";
  readonly step: number;
  readonly finish: Finish;
  readonly usage?: Usage;
  readonly model?: string;
  readonly continues?: boolean;
}

/** A step whose driver died starts again; readers drop the text that they have shown of it. */
export interface StepRestarted {
  readonly type: "StepRestarted";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
}

/** A model request is about to be sent; a `closing` one has no tools and is the last. */
export interface StepStarted {
  readonly type: "StepStarted";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
  readonly closing?: boolean;
  readonly instructions?: string;
}

/** A permission rule, with the fields of `[[permissions]]`. */
export interface StoredRule {
  readonly tool: string;
  readonly action: "allow" | "ask" | "deny";
  readonly match?: Readonly<Record<string, string>>;
  readonly enabled?: boolean;
  readonly note?: string;
}

/** A stored rule, in TOML as well, and why it can never decide, if another rule shadows it. */
export interface StoredRuleView {
  readonly rule: StoredRule;
  readonly text: string;
  readonly shadow: string;
  readonly is_idle: boolean;
}

/** The `data:` of one message of an event stream; its `id:` is the cursor after it. Exactly one field is set. */
export interface StreamItem {
  readonly seq?: number;
  readonly event?: LogEvent | null;
  readonly delta?: StreamDelta | null;
  readonly progress?: CallProgress | null;
  readonly end?: "" | "drain" | "erased" | "lost" | "over" | "revoked" | "slow" | "unshared";
}

/** A call is about to start this sub-agent run, in this session. */
export interface SubagentStarted {
  readonly type: "SubagentStarted";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly session: string;
  readonly child: string;
  readonly number?: number;
}

/** A compaction: in later requests on this branch it takes the place of everything above `kept`. */
export interface SummaryPart {
  readonly type: "summary";
  readonly text: string;
  readonly kept?: string;
  readonly step?: number;
  readonly task?: string;
  readonly quotes?: readonly (Quote)[];
  readonly artifacts?: readonly (string)[];
  readonly messages?: number;
  readonly before?: number;
  readonly after?: number;
  readonly limit?: number;
  readonly why?: "command" | "limit" | "overflow";
  readonly during?: number;
  readonly model?: string;
  readonly by?: string;
  readonly focus?: string;
  readonly untrusted?: boolean;
  readonly private?: boolean;
  readonly learned?: readonly (LearnedSize)[];
  readonly calls?: string;
}

/** Hand the session to another agent, which takes the next turns. */
export interface SwitchAgent {
  readonly agent: string;
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

/** Text in a message, of a user or a model. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly opaque?: Opaque | null;
  readonly citations?: readonly (Citation)[];
}

/** The session got a title: from its first message, or with `model` from that model. */
export interface TitleSet {
  readonly type: "TitleSet";
  readonly at?: number;
  readonly turn: string;
  readonly title: string;
  readonly usage?: Usage;
  readonly model?: string;
}

/** Tools, by name. */
export interface ToolList {
  readonly tools: readonly (ToolView)[];
}

/** A call and, once it is finished, its result. `arguments` is the text the model wrote, valid JSON or not. */
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
  readonly provider_id?: string;
  readonly opaque?: Opaque | null;
  readonly identity?: string;
  readonly parent?: string;
}

/** The permission settings of a tool itself, which apply if no rule does. */
export interface ToolRules {
  readonly name: string;
  readonly origin: string;
  readonly group: string;
  readonly approval: string;
  readonly review: string;
  readonly read_only: boolean;
  readonly idempotent: boolean;
  readonly is_offered: boolean;
  readonly manual: boolean;
  readonly egress: boolean;
  readonly subjects: Readonly<Record<string, string>>;
}

/** A step of a tool returned this JSON value, which a resumed tool gets again; a `failed` one may be run again. */
export interface ToolStepFinished {
  readonly type: "ToolStepFinished";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly name: string;
  readonly value?: string;
  readonly failed?: boolean;
}

/** A tool is about to run a step (`ctx.step`). Written before the effect, like `CallStarted`. */
export interface ToolStepStarted {
  readonly type: "ToolStepStarted";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly name: string;
}

/** A tool as a model sees it. */
export interface ToolView {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly origin: string;
  readonly approval: string;
  readonly read_only: boolean;
  readonly idempotent: boolean;
  readonly group: string;
}

/** A span of a turn. `end` is 0 while it lasts. */
export interface TraceSpan {
  readonly id: string;
  readonly kind: "call" | "compaction" | "gate" | "late" | "mark" | "retry" | "step" | "subagent" | "tool_step" | "wait";
  readonly name: string;
  readonly start: number;
  readonly end?: number;
  readonly parent?: string;
  readonly active_at?: number;
  readonly state?: string;
  readonly text?: string;
  readonly number?: number;
  readonly by?: string;
  readonly usage?: Usage | null;
  readonly cache?: CacheCollapse | null;
  readonly session?: string;
  readonly turn?: string;
}

/** What a turn did and when: its spans by their starts, as far as its log goes. Times are in seconds since 1970. */
export interface TraceView {
  readonly session: string;
  readonly turn: string;
  readonly phase: Phase;
  readonly agent: string;
  readonly model: string;
  readonly answer: string;
  readonly start: number;
  readonly end: number;
  readonly now: number;
  readonly usage: Usage;
  readonly stats: TurnStats;
  readonly problem: Problem | null;
  readonly spans: readonly (TraceSpan)[];
  readonly trace_id: string;
}

/** The text of a recording. */
export interface TranscriptView {
  readonly text: string;
}

/** All messages of a session, in the order in which they were added, and the end of the selected branch. */
export interface TreeView {
  readonly messages: readonly (Message)[];
  readonly leaf: string | null;
}

/** Trust an MCP server as it was shown: `hash` is the hash of its `McpView`. */
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

/** The turn completed. */
export interface TurnCompleted {
  readonly type: "TurnCompleted";
  readonly at?: number;
  readonly turn: string;
  readonly usage?: Usage;
  readonly reports?: readonly (Problem)[];
}

/** The turn failed. */
export interface TurnFailed {
  readonly type: "TurnFailed";
  readonly at?: number;
  readonly turn: string;
  readonly problem: Problem;
  readonly usage?: Usage;
  readonly reports?: readonly (Problem)[];
}

/** The outcome is known; open calls are finished and clean-ups run before the terminal event. */
export interface TurnFinishing {
  readonly type: "TurnFinishing";
  readonly at?: number;
  readonly turn: string;
  readonly outcome: "cancelled" | "completed" | "error";
  readonly problem?: Problem | null;
  readonly hard?: boolean;
  readonly command?: string;
}

/** The options of a turn, fixed from its start to its end. */
export interface TurnOptions {
  readonly model?: string;
  readonly max_steps?: number;
  readonly tool_history?: "digest" | "full" | "none" | "results";
  readonly late?: "discard" | "inject" | "keep";
  readonly system?: string;
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly timeout?: number;
  readonly gate_timeout?: number;
  readonly tools?: readonly (string)[] | null;
  readonly rules?: readonly (Rule)[];
  readonly review?: "always" | "never" | "on_error";
  readonly manual?: readonly (string)[];
  readonly budget?: Budget;
  readonly lineage?: Lineage | null;
  readonly clients?: readonly (ClientTool)[];
  readonly agent?: string;
  readonly needs_agent?: boolean;
  readonly timezone?: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly by?: string;
  readonly folder?: string;
  readonly trace?: string;
  readonly priority?: "background" | "interactive";
  readonly context?: string;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
  readonly at_step_limit?: "answer" | "ask";
  readonly compact?: string | null;
  readonly prompt?: Prompt | null;
}

/** What a turn may do: its rules in addition to the runtime's, its tools, and its permission mode. */
export interface TurnPermissions {
  readonly rules?: readonly (Rule)[];
  readonly tools?: readonly (string)[] | null;
  readonly mode?: "" | "ask" | "auto_edit" | "plan";
}

/** A turn started: with a new input, or (a re-run) under an existing message. */
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

/** Statistics of one turn; times are in seconds. Sub-agent runs have their own: to their parent they are a tool. */
export interface TurnStats {
  readonly steps?: number;
  readonly calls?: number;
  readonly retries?: number;
  readonly restarts?: number;
  readonly seconds?: number;
  readonly waiting_seconds?: number;
  readonly model_seconds?: number;
  readonly tool_seconds?: number;
  readonly retry_seconds?: number;
  readonly first_token_seconds?: number | null;
}

/** Every plugin that is not done waits for an external event; nothing is held in memory. */
export interface TurnSuspended {
  readonly type: "TurnSuspended";
  readonly at?: number;
  readonly turn: string;
  readonly step: number;
}

/** The present state of a turn, from its log. */
export interface TurnView {
  readonly session: string;
  readonly turn: string;
  readonly phase: Phase;
  readonly step: number;
  readonly messages: readonly (Message)[];
  readonly gates: readonly (Gate)[];
  readonly usage: Usage;
  readonly problem: Problem | null;
  readonly stats: TurnStats;
}

/** Token usage of a request, as the provider counted it, and its cost. */
export interface Usage {
  readonly input?: number;
  readonly output?: number;
  readonly cached?: number;
  readonly reasoning?: number;
  readonly written?: number;
  readonly cost?: number | null;
  readonly estimated?: boolean;
  readonly provider_calls?: number;
  readonly web_searches?: number;
  readonly file_searches?: number;
}

/** Usage of the tenant since a time. */
export interface UsageView {
  readonly since: number;
  readonly total: Spent;
  readonly days: readonly (DailyUsage)[];
}

/** What a user may use in a period, and what of it they have used; 0 is no limit. */
export interface UserBudgetView {
  readonly steps: number;
  readonly calls: number;
  readonly tokens: number;
  readonly cost: number;
  readonly period: number;
  readonly spent: Spent;
}

/** Users, by id. */
export interface UserList {
  readonly users: readonly (UserView)[];
}

/** Usage of one user with one model and one agent; "" is unknown. */
export interface UserUsage {
  readonly user: string;
  readonly model: string;
  readonly agent: string;
  readonly spent: Spent;
}

/** Usage of the tenant since a time, by user, model and agent. */
export interface UserUsageView {
  readonly since: number;
  readonly rows: readonly (UserUsage)[];
}

/** A user. */
export interface UserView {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly is_active: boolean;
  readonly origin: string;
  readonly created: number;
  readonly has_password: boolean;
  readonly last_used: number;
  readonly budget: UserBudgetView | null;
}

/** Another user who looks at a session or a gate now. */
export interface ViewerView {
  readonly session: string;
  readonly gate: string;
  readonly user: string;
  readonly name: string;
  readonly is_administrator: boolean;
}

/** The timer fired, the external system delivered this JSON value, or its time is over. */
export interface WaitFinished {
  readonly type: "WaitFinished";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly wait: string;
  readonly value?: string;
  readonly timed_out?: boolean;
  readonly command?: string;
}

/** A tool waits for a time (`ctx.sleep`) or for the result of an external system (`ctx.external`). */
export interface WaitStarted {
  readonly type: "WaitStarted";
  readonly at?: number;
  readonly turn: string;
  readonly call: string;
  readonly wait: string;
  readonly kind: "external" | "timer";
  readonly until?: number;
  readonly label?: string;
}

/** Deliveries that failed since the last one that succeeded, since when, and the last problem. At most 200 are counted. */
export interface WebhookFailures {
  readonly count: number;
  readonly since: number;
  readonly problem: string;
}

/** The webhooks of a tenant, by id. */
export interface WebhookList {
  readonly webhooks: readonly (WebhookView)[];
}

/** What a receiver answered to a test event; `status` 0: nothing. `problem` says why it is not a success. */
export interface WebhookTestView {
  readonly id: string;
  readonly status: number;
  readonly problem: string;
}

/** A URL that is told of events. `disabled` says why it is not; its secret is never shown again. */
export interface WebhookView {
  readonly id: string;
  readonly url: string;
  readonly events: readonly ("gate.opened" | "gate.resolved" | "turn.cancelled" | "turn.completed" | "turn.failed")[];
  readonly description: string;
  readonly created: number;
  readonly by: string;
  readonly disabled: string;
  readonly origin: "api" | "config";
  readonly is_paused: boolean;
  readonly failing: WebhookFailures | null;
}

/** A webhook, and the secret that its receiver verifies signatures with. */
export interface WebhookWithSecret {
  readonly webhook: WebhookView;
  readonly secret: string;
}

export type LogEvent = TurnStarted | AgentSwitched | AnswerStarted | MessageAdded | InputRefused | StepStarted | StepRestarted | RequestRetried | FileUploadChanged | StepFinished | StepInterrupted | OutputRejected | CompactionStarted | CompactionFinished | CompactionFailed | GateOpened | GateResolved | CallClaimed | NestedCallRequested | PermissionDecided | LimitReached | CallStarted | SubagentStarted | ToolStepStarted | ToolStepFinished | WaitStarted | WaitFinished | CallSuspended | CallNotified | CallResumed | CallFinished | FilesChanged | LateResultReceived | HookFinished | TurnSuspended | TurnFinishing | TurnCompleted | TurnFailed | TurnCancelled | TitleSet | LeafSelected | AgentSelected | InstructionsSet | SessionUpdated | AnswerRated | MessageDeleted | MessagesImported | GrantRevoked | RevertStarted | FilesReverted | CommandDropped;

export type Terminal = TurnCompleted | TurnFailed | TurnCancelled;

export type Part = TextPart | ReasoningPart | ToolPart | FilePart | StepPart | NoticePart | FilesPart | SummaryPart | ClearedPart | ContextPart | ProviderToolPart;

export type StreamedPart = TextPart | ReasoningPart | ToolPart | FilePart | ProviderToolPart;

export type StreamDelta = TextDelta | ReasoningDelta | CallDelta;

export type CallState = "asking" | "cancelled" | "completed" | "denied" | "failed" | "outcome_unknown" | "pending" | "reviewing" | "running" | "waiting" | "withheld";

export type ContextKind = "answers" | "files" | "instructions" | "notices" | "other" | "person" | "results" | "skills" | "summary" | "tools";

export type Finish = "cancelled" | "content_filter" | "error" | "length" | "other" | "paused" | "refusal" | "stop" | "tool_calls";

export type GateKind = "call" | "client" | "egress" | "form" | "limit" | "loop" | "manual" | "question" | "result";

export type MessageRole = "assistant" | "notice" | "user";

export type Role = "approver" | "member" | "operator" | "owner" | "viewer";

/** A phase and an event → the next phase. */
export const TRANSITIONS: Readonly<Record<Phase, Partial<Record<LogEvent["type"], Phase>>>> = {
  idle: { TurnStarted: "preparing" },
  preparing: { TitleSet: "preparing", AgentSwitched: "preparing", MessageAdded: "preparing", InputRefused: "preparing", AnswerStarted: "preparing", LimitReached: "preparing", CompactionStarted: "preparing", CompactionFinished: "preparing", CompactionFailed: "preparing", StepStarted: "streaming", TurnFinishing: "finalizing" },
  streaming: { StepRestarted: "streaming", RequestRetried: "streaming", FileUploadChanged: "streaming", StepFinished: "streaming", OutputRejected: "streaming", StepInterrupted: "streaming", HookFinished: "streaming", MessageAdded: "streaming", InputRefused: "streaming", AnswerStarted: "streaming", StepStarted: "streaming", LimitReached: "streaming", CompactionStarted: "streaming", CompactionFinished: "streaming", CompactionFailed: "streaming", FilesChanged: "streaming", PermissionDecided: "tool_call", GateOpened: "tool_call", CallFinished: "tool_call", TurnSuspended: "waiting", TurnFinishing: "finalizing" },
  tool_call: { LimitReached: "tool_call", PermissionDecided: "tool_call", CompactionStarted: "tool_call", CompactionFinished: "tool_call", CompactionFailed: "tool_call", GateOpened: "tool_call", GateResolved: "tool_call", CallClaimed: "tool_call", NestedCallRequested: "tool_call", CallStarted: "tool_call", SubagentStarted: "tool_call", ToolStepStarted: "tool_call", ToolStepFinished: "tool_call", WaitStarted: "tool_call", WaitFinished: "tool_call", CallSuspended: "tool_call", CallNotified: "tool_call", CallResumed: "tool_call", CallFinished: "tool_call", AgentSwitched: "tool_call", FilesChanged: "tool_call", HookFinished: "tool_call", MessageAdded: "tool_call", InputRefused: "tool_call", AnswerStarted: "tool_call", StepStarted: "streaming", TurnSuspended: "waiting", TurnFinishing: "finalizing" },
  waiting: { GateResolved: "tool_call", CallClaimed: "waiting", CallNotified: "tool_call", WaitFinished: "tool_call", LimitReached: "tool_call", TurnFinishing: "finalizing" },
  finalizing: { CallFinished: "finalizing", FilesChanged: "finalizing", TitleSet: "finalizing", LateResultReceived: "finalizing", TurnCompleted: "completed", TurnFailed: "error", TurnCancelled: "cancelled" },
  completed: { LateResultReceived: "completed" },
  error: { LateResultReceived: "error" },
  cancelled: { LateResultReceived: "cancelled" },
};
