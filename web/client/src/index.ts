/** Client library of an Everturn server: `Everturn` sends requests, `SessionFollower` follows a session, `fold` builds a state from a log. */
export * from "./types.gen.js";
export * from "./state.js";
export { addEarlier, apply, applyDelta, applyProgress, emptySession, fold } from "./fold.js";
export { path, versions, openGates, isOver, nestedCalls, textOf, runSeconds } from "./views.js";
export { TOKEN, isSameValue } from "./json.js";
export { Everturn, newKey, type Follower, type ClientOptions } from "./client.js";
export { ServerError } from "./errors.js";
export { follow, type FollowOptions, type StreamStatus, type MessageOutcome } from "./stream.js";
export { SseParser, type StreamMessage } from "./sse.js";
export { SessionFollower, type Connection } from "./session.js";
export { InboxFollower } from "./inbox.js";
export { Topics, type Topic } from "./topics.js";
