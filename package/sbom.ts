// The bill of materials (CycloneDX 1.6): the service, its runtime packages, and the Node that they run on.
import { createHash } from 'node:crypto'
import type { Lockfile, RuntimePackage } from './lockfile.ts'
import { findRuntimePackages } from './lockfile.ts'

/** Deterministic: depends only on the lockfile. */
export function makeSbom(lockfile: Lockfile): string {
  const [service, ...others] = findRuntimePackages(lockfile) as [RuntimePackage, ...RuntimePackage[]]
  const all = [service, ...others]
  const refs = new Map(all.map((one) => [one.path, one.path || purl(one)]))
  const content = {
    version: 1,
    metadata: {
      lifecycles: [{ phase: 'build' }],
      component: { type: 'application', 'bom-ref': refs.get(''), ...describe(service) },
    },
    components: others.map((one) => ({ type: 'library', 'bom-ref': refs.get(one.path), ...describe(one) })),
    dependencies: all.map(({ path, needs }) => ({
      ref: refs.get(path),
      dependsOn: needs.map((need) => refs.get(need)).sort(),
    })),
  }
  const serialNumber = `urn:uuid:${makeUuid(JSON.stringify(content))}`
  return `${JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber, ...content }, null, 2)}\n`
}

function describe(one: RuntimePackage) {
  const { name, locked } = one
  const [group, rest] = name.startsWith('@') ? (name.split('/') as [string, string]) : [undefined, name]
  return {
    ...(group && { group }),
    name: rest,
    version: locked.version,
    ...(locked.optional && { scope: 'optional' }),
    purl: purl(one),
    ...(/^node-(bin-)?(linux|darwin|win)-/.test(name) && {
      // Vulnerabilities of Node are published under this name, not under that of the npm package.
      cpe: `cpe:2.3:a:nodejs:node.js:${locked.version}:*:*:*:*:*:*:*`,
    }),
    ...(locked.license && { licenses: [{ expression: locked.license }] }),
    ...(locked.integrity && { hashes: [readHash(locked.integrity)] }),
  }
}

function purl({ name, locked }: RuntimePackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${locked.version}`
}

function readHash(integrity: string) {
  const [algorithm, base64] = integrity.split('-') as [string, string]
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(base64, 'base64').toString('hex') }
}

/** A UUID (version 8, RFC 9562) of the content, so that a build can be repeated. */
function makeUuid(content: string): string {
  const hex = createHash('sha256').update(content).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`]
  return [...parts, hex.slice(20, 32)].join('-')
}
