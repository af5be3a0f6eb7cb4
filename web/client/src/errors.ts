/** Server error: an error response with a stable code, and a text that says what to do next. */
export class ServerError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly where: string = "",
    readonly retryAfter: number = 0,
  ) {
    super(message);
    this.name = "ServerError";
  }

  /** Whether the server was unreachable or busy: the same request may succeed later. */
  get isAway(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}
