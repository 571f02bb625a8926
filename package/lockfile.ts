// The runtime packages of the service, found by following its dependencies through package-lock.json.
// `npm sbom --omit dev` would omit those that are also development dependencies.
import { readFileSync } from 'node:fs'

type Names = Record<string, string>

/** The used members of an entry of `packages` in a lockfile. */
export type Locked = {
  name?: string
  version: string
  license?: string
  integrity?: string
  optional?: boolean
  dependencies?: Names
  optionalDependencies?: Names
  peerDependencies?: Names
}

export type Lockfile = { name: string; version: string; packages: Record<string, Locked> }

/** `path`: where npm installs it; `needs`: the paths of its dependencies. */
export type RuntimePackage = { path: string; name: string; locked: Locked; needs: string[] }

export function readLockfile(): Lockfile {
  return JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'))
}

/** Finds the service itself, with the path '', and its dependencies on all platforms. */
export function findRuntimePackages({ name, packages }: Lockfile): RuntimePackage[] {
  const found = new Map<string, RuntimePackage>()
  const waiting = ['']
  for (const path of waiting) {
    if (found.has(path)) continue
    const locked = packages[path] as Locked
    const needs = findNeeds(packages, path)
    found.set(path, { path, name: path.split('node_modules/').at(-1) || name, locked, needs })
    waiting.push(...needs)
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

function findNeeds(packages: Lockfile['packages'], path: string): string[] {
  const { dependencies, optionalDependencies, peerDependencies } = packages[path] as Locked
  const optional = Object.keys({ ...optionalDependencies, ...peerDependencies })
  const found = optional.map((name) => findPackage(packages, path, name)).filter((one) => one !== undefined)
  const needed = Object.keys(dependencies ?? {}).filter((name) => !optional.includes(name))
  return [...found, ...needed.map((name) => findPackage(packages, path, name) ?? fail(path, name))]
}

/** Resolves a package as Node does: in the nearest `node_modules` that contains it. */
function findPackage(packages: Lockfile['packages'], from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    const path = `${folder}/node_modules/${name}`.replace(/^\//, '')
    if (packages[path]) return path
    if (!folder) return undefined
  }
}

function fail(path: string, name: string): never {
  throw new Error(`package-lock.json has no ${name} for ${path || 'the service'}; run npm install`)
}
