/** A login that ends while the page is open: what was typed stays, and the page goes on when somebody is logged in again. */
import { Store } from "./store";

/** Whether the server has said that it no longer knows this browser. */
export const ended = new Store(false);

/** `fetch`, and an eye on what comes back. */
export const watched: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  if (answer.status === 401) ended.set(true);
  return answer;
};
