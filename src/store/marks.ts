// Rows of `meta` with the progress of an import, or with the run that has claimed the target of a copy.

/** The statement that sets a checkpoint; `key` and `value` are placeholders of the engine. */
export function setMark(key: string, value: string): string {
  return `INSERT INTO meta (key, value) VALUES (${key}, ${value}) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
}
