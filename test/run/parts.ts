// The parts of the suite: what `npm run test:fast` runs, and the table of `npm run test:slow`.

/** SQLite alone, without a browser and without processes of its own: a minute for all of them. */
export const fastFiles = [
  ...['access/gcra', 'access/issuer-docs', 'access/rate-limits'],
  ...['add/adding', 'add/batch-delay', 'add/properties', 'add/races', 'add/waiting'],
  ...['cli/cli-docs', 'cli/progress'],
  ...['client/client', 'contract/breaking', 'contract/patterns', 'contract/security'],
  ...[
    'http/bad-requests',
    'http/connection-log',
    'http/cors',
    'http/headers',
    'http/listen',
    'http/overload',
  ],
  ...['http/pipelining', 'http/request-ids', 'http/sizes'],
  ...['list/codings', 'list/heads', 'list/items', 'list/listing', 'list/pages'],
  ...['run/bench-readme', 'run/mutants', 'run/parts', 'site/documents', 'site/markdown'],
  ...['store/epochs', 'store/outages', 'store/sqlite-files', 'store/sqlite-release', 'store/sqlite-sharing'],
  'store/sqlite-writer',
].map((name) => `test/${name}.test.ts`)

/** `inTurns`: how it is run where a run takes a share of the table; `small`: without the full sizes. */
export type Row = { file: string; shows: string; needs: string; inTurns: 'full' | 'small' }

const slow = (name: string, shows: string, needs = '', inTurns: Row['inTurns'] = 'full'): Row => ({
  file: `test/${name}.slow.ts`,
  shows,
  needs,
  inTurns,
})

/** The repetition of a file of `npm test`. */
const again = (name: string): Row => ({
  file: `test/${name}.test.ts`,
  shows: 'the same with full time-outs, sizes and bounds',
  needs: '',
  inTurns: 'full',
})

/** What lasts longest stands in different turns. */
export const slowRows: readonly Row[] = [
  slow('access/oidc-provider', 'a real issuer that comes late, rotates its keys, goes and comes back'),
  slow('http/flood', 'floods of requests, and of unknown tokens', 'Linux'),
  slow('http/strangers', 'what clients without a token do to others', 'Linux'),
  slow('service/archive', 'the archives of a release', 'Linux, npm registry', 'small'),
  slow('service/image', 'the container image', 'root, buildah, podman, runc'),
  slow('service/matrix', 'each npm on each Node that people have', 'Linux, git, curl, npm registry', 'small'),
  slow('service/rolling', 'a rolling restart behind a proxy', 'haproxy'),
  slow('service/signals', 'signals to a whole process group', 'Linux'),
  slow('store/disk', 'file systems that run full or turn read-only', 'root, unshare, mke2fs'),
  slow('store/patroni', 'the faults of the cluster that deploy/patroni sets up', 'root, patroni, etcd'),
  slow('store/power-cut', 'the power fails after a restart', 'Linux, cc'),
  slow('store/sync', 'a disk that fails to sync', 'Linux, cc'),
  ...['access/issuer-away', 'access/oidc', 'add/batches', 'add/durability', 'add/lost-answers'].map(again),
  ...['add/properties', 'add/races', 'cli/backup-killed', 'cli/export', 'cli/import-broken'].map(again),
  ...['cli/import-killed', 'cli/interrupted', 'http/fairness', 'http/hostile', 'http/strangers'].map(again),
  ...[
    'http/time',
    'service/package',
    'service/shutdown',
    'service/traces',
    'site/docs',
    'site/docs-look',
  ].map(again),
  ...['store/clocks', 'store/failover', 'store/postgres-outages', 'store/postgres-vanished'].map(again),
  ...['store/replicas', 'store/sqlite-answers', 'store/sqlite-writer'].map(again),
]

export const slowTurns = 24
