// The turn of a commit, for what a run does a part of: by its hash, so that a push of several commits skips none for good.
import { execFileSync } from 'node:child_process'

/** A number from 0 to `turns` - 1; `auto`: of the commit that is checked out. */
export function readTurn(turn: string, turns: number): number {
  return (turn === 'auto' ? Number.parseInt(readHash().slice(0, 12), 16) : Number(turn)) % turns
}

function readHash(): string {
  return execFileSync('git', ['rev-parse', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' })
}
