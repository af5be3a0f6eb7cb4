/** Talk to an Everturn server: `Everturn` asks, `SessionFollower` follows a session, `fold` is what its log comes to. */
export * from "./types.gen.js";
export * from "./state.js";
export { apply, applyDelta, applyProgress, emptySession, fold } from "./fold.js";
export { path, versions, openGates, isOver, callsOf, textOf, ranFor } from "./views.js";
export { TOKEN, isSameValue } from "./json.js";
export { Everturn, newKey, type Follower, type Options } from "./client.js";
export { ServerError } from "./errors.js";
export { follow, type Follow, type Standing, type Taken } from "./stream.js";
export { Parser, type StreamMessage } from "./sse.js";
export { SessionFollower, type Connection, type Topic } from "./session.js";
export { InboxFollower } from "./inbox.js";
export { Topics } from "./topics.js";
