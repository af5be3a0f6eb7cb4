/** Expired login: detects 401 responses while the web UI is open. Drafts stay, and the UI continues after the next login. */
import { Store } from "./store";

/** Whether the server has answered 401. */
export const loggedOut = new Store(false);

/** `fetch` that detects 401 responses. */
export const fetchAndDetectLogout: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  if (answer.status === 401) loggedOut.set(true);
  return answer;
};
