/** Reading a branch whole: the server returns it in pages. */
import { expect, test } from "vitest";
import { Everturn } from "../src/client";

const COUNT = 2_345;
const branch = Array.from({ length: COUNT }, (_, at) => ({ id: `msg_${at}`, parent: at ? `msg_${at - 1}` : null, role: at % 2 ? "assistant" : "user" }));

/** A server with one branch: the last `limit` messages before `before`, and the cursor of the page before them. */
function server(urls: string[] = []): typeof fetch {
  return async (input) => {
    const url = new URL(String(input), "http://server");
    urls.push(url.search);
    const end = url.searchParams.has("before") ? branch.findIndex((message) => message.id === url.searchParams.get("before")) : COUNT;
    const start = Math.max(0, end - Number(url.searchParams.get("limit")));
    const messages = branch.slice(start, end);
    return Response.json({ messages, next: start ? messages[0]!.id : "", ratings: [{ message: messages[0]!.id, by: "ann", rating: "up", reason: "" }] });
  };
}

test("a long branch is read from its first message to its last, once each, with all ratings", async () => {
  const { messages, ratings, next } = await new Everturn({ base: "http://server", fetch: server() }).allMessages("ses_1");
  expect(messages.map((message) => message.id)).toEqual(branch.map((message) => message.id));
  expect(ratings.map((rating) => rating.message)).toEqual(["msg_0", "msg_345", "msg_1345"]);
  expect(next).toBe("");
});

test("only the first page names the branch: the others continue it", async () => {
  const urls: string[] = [];
  await new Everturn({ base: "http://server", fetch: server(urls) }).allMessages("ses_1", "msg_2344");
  expect(urls).toEqual(["?leaf=msg_2344&limit=1000", "?before=msg_1345&limit=1000", "?before=msg_345&limit=1000"]);
});
