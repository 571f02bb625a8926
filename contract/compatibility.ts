// The document beside the last one that was released: a breaking change needs a new major version, or a reason.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { findBreaking, isMajor } from './breaking.ts'
import type { Node } from './schema-gaps.ts'
import { folder, type Outcome, type Subject } from './tools.ts'

type Accepted = { change: string; reason: string }

export async function checkCompatibility({ file }: Subject): Promise<Outcome> {
  const [released, accepted, now]: [Node, Accepted[], Node] = [
    parse(readFileSync(`${folder}released.yaml`, 'utf8')),
    parse(readFileSync(`${folder}accepted.yaml`, 'utf8')) ?? [],
    parse(readFileSync(file, 'utf8')),
  ]
  const versions: [string, string] = [released.info.version, now.info.version]
  const breaking = findBreaking(released, now)
  const found = isMajor(...versions)
    ? []
    : breaking.filter((line) => !accepted.some(({ change }) => change === line))
  const stale = accepted.filter(({ change, reason }) => !breaking.includes(change) || !reason)
  return {
    tool: 'Breaking changes',
    version: versions.join(' to '),
    cases: Object.values<Node>(released.paths).flatMap((path) => Object.keys(path)).length,
    failures: [
      ...found.map((line) => `breaks clients of ${versions[0]}: ${line}`),
      ...stale.map(({ change }) => `accepted.yaml names what is not there, or without a reason: ${change}`),
    ],
    explained: breaking.length - found.length,
  }
}
