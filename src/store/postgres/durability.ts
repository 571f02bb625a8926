// Settings of a server on which the durability of acknowledged plants depends.

/** Consequences of settings that are off. Our own sessions raise `synchronous_commit` (see session.ts). */
const consequences = {
  fsync: 'when its machine fails, plants that were acknowledged can be lost, or the database damaged',
  full_page_writes: 'when its machine fails, the database can be damaged',
  synchronous_commit: 'this service turns it on for itself; what others commit there can be lost',
}

/** Query for settings that are off on the server, whatever the session has set. */
export const findUnsafe = `
  SELECT name FROM pg_settings
  WHERE name IN (${Object.keys(consequences).map((name) => `'${name}'`)}) AND reset_val = 'off' ORDER BY name`

/** Describes a setting for operators. */
export function describeUnsafe(name: string): string {
  return `${name} is off on the database server: ${consequences[name as keyof typeof consequences]}`
}
