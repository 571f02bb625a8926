// Settings of a server that the promise of a 200 rests on.

/** Consequences of a setting that is off. Our own sessions raise `synchronous_commit` (see session.ts). */
const consequences = {
  fsync: 'when its machine fails, plants that were acknowledged can be lost, or the database damaged',
  full_page_writes: 'when its machine fails, the database can be damaged',
  synchronous_commit: 'this service turns it on for itself; what others commit there can be lost',
}

/** Names the settings that are off by default, whatever a session made of them. */
export const findUnsafe = `
  SELECT name FROM pg_settings
  WHERE name IN (${Object.keys(consequences).map((name) => `'${name}'`)}) AND reset_val = 'off' ORDER BY name`

/** In words for an operator. */
export function describeUnsafe(name: string): string {
  return `${name} is off on the database server: ${consequences[name as keyof typeof consequences]}`
}
