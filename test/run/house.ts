// npm run check: the rooms of src/ stand in one order, and no file is longer than a reader likes. Circles of imports, and long
// functions, are the linter's.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Each room knows of those before it, and of none behind it. */
const rooms = [
  ...[
    'limits',
    'version',
    'runtime',
    'logging',
    'store',
    'config',
    'tokens',
    'validation',
    'http',
    'plants',
    'site',
  ],
  ...['maintenance', 'service', 'cli'],
]
const mostLines = 200

const files = globSync(['src/**/*.ts', 'schemas/*.ts']).toSorted()
const imported = new Map(files.map((file) => [file, findImports(file)]))

/** What a file imports of ours, for its types too, wherever it does so. */
function findImports(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map(([, path]) =>
    join(dirname(file), path as string),
  )
}

function roomOf(file: string): number {
  const [top, room = ''] = file.split('/')
  // What the contract says, anybody may know.
  return top === 'schemas' ? 0 : rooms.indexOf(room.replace(/\.ts$/, ''))
}

const faults: string[] = []
for (const [file, others] of imported) {
  if (roomOf(file) < 0) faults.push(`${file} is in a room that test/run/house.ts does not know`)
  for (const other of others)
    if (roomOf(other) > roomOf(file)) faults.push(`${file} imports ${other}, which is in a room behind it`)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').length
  if (lines > mostLines) faults.push(`${file} has ${lines} lines, more than ${mostLines}`)
}
for (const fault of new Set(faults)) console.error(fault)
if (faults.length > 0) process.exitCode = 1
