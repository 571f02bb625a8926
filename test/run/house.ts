// npm run check: the rooms of src/ stand in one order, and what a folder holds, files and folders, knows of each other in
// one direction; no two exported types have one name, and no file is longer than a reader likes. Circles between files, and
// long functions, are the linter's.
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

/** Finds the first circle among what a folder holds, each folder in it taken as one; undefined if there is none. */
function findCircle(folder: string): string[] | undefined {
  const inside = (file: string) =>
    file.startsWith(`${folder}/`) ? file.slice(folder.length + 1).split('/')[0] : undefined
  const arrows = new Map<string, Set<string>>()
  for (const [file, others] of imported) {
    const from = inside(file)
    if (from === undefined) continue
    const known = arrows.get(from) ?? new Set()
    for (const other of others) known.add(inside(other) ?? from)
    known.delete(from)
    arrows.set(from, known)
  }
  const done = new Set<string>()
  const follow = (path: string[]): string[] | undefined => {
    const last = path.at(-1) as string
    if (path.indexOf(last) < path.length - 1) return path.slice(path.indexOf(last))
    if (done.has(last)) return undefined
    for (const next of arrows.get(last) ?? []) {
      const circle = follow([...path, next])
      if (circle) return circle
    }
    done.add(last)
    return undefined
  }
  return [...arrows.keys()].map((name) => follow([name])).find((circle) => circle !== undefined)
}

/** The files that export each type. */
function findTypes(): Map<string, string[]> {
  const types = new Map<string, string[]>()
  for (const file of files)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /^export (?:type|interface|(?:abstract )?class) (\w+)/gm,
    ))
      types.set(name, [...(types.get(name) ?? []), file])
  return types
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
for (const folder of new Set(files.map(dirname))) {
  const circle = findCircle(folder)
  if (circle) faults.push(`${folder}: ${circle.join(' -> ')}`)
}
for (const [name, where] of findTypes())
  if (where.length > 1) faults.push(`${name} is a type of ${where.join(' and ')}`)
for (const fault of new Set(faults)) console.error(fault)
if (faults.length > 0) process.exitCode = 1
