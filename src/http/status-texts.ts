// What statuses are called. An ESM import of node:http would read each of its exports, `WebSocket` among them, and so load
// all of undici: 60 ms and 8 MiB in each thread.

/** RFC 9110 calls 413 so; Node has the older name. */
export const statusTexts: Readonly<Record<number, string | undefined>> = {
  ...process.getBuiltinModule('node:http').STATUS_CODES,
  413: 'Content Too Large',
}
