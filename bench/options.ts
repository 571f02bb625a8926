// The bench's command line.
import { resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'

export type Options = {
  quick: boolean
  only: string[]
  rounds: number
  roundMs: number
  warmUpMs: number
  /** How long slices may be repeated because others disturbed them: in one scenario, and in all. */
  repeatMs: [scenario: number, all: number]
  /** How often a server is started whose start is measured. */
  starts: number
  generator: 'own' | 'autocannon'
  postgres: string | undefined
  output: string | undefined
  /** Another checkout, absolute. */
  before: string | undefined
  /** How many plants the whole list has, and how many the large store. */
  listPlants: number
  largePlants: number
}

/** Reads argv; prints and exits on --help and on what it does not understand. */
export function readOptions(argv: string[], scenarios: string[]): Options {
  const only = new Option('--only <name...>', 'only these scenarios').choices(scenarios)
  const generator = new Option('--generator <name>', 'where the load comes from')
    .choices(['own', 'autocannon'])
    .default('own')
  const given = new Command('bench')
    .description('Measures Plant Store beside a bare node:http server and other frameworks.')
    .option(
      '--quick',
      'short rounds and small stores: little more than a minute, figures for orientation only',
    )
    .addOption(only)
    .option('--rounds <n>', 'how many rounds each server gets', readCount)
    .option('--seconds <n>', 'how long a round is', readCount)
    .addOption(generator)
    .option('--postgres <url>', 'an empty PostgreSQL database to use instead of one of its own')
    .option('--before <directory>', 'another checkout of Plant Store, to hold this one against')
    .option('--output <directory>', 'where the results go instead of bench/results')
    .parse(argv)
    .opts()
  const quick = given.quick === true
  const roundMs = given.seconds ? given.seconds * 1000 : quick ? 300 : 1000
  return {
    quick,
    only: given.only ?? scenarios,
    rounds: given.rounds ?? (quick ? 2 : 7),
    roundMs,
    warmUpMs: quick ? 300 : 2000,
    repeatMs: quick ? [2 * roundMs, 10 * roundMs] : [6 * roundMs, 60 * roundMs],
    starts: quick ? 3 : 12,
    generator: given.generator,
    postgres: given.postgres,
    output: given.output,
    before: given.before && resolve(given.before),
    listPlants: quick ? 100_000 : 1_000_000,
    largePlants: quick ? 100_000 : 10_000_000,
  }
}

function readCount(text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || count < 1 || count > 100)
    throw new InvalidArgumentError('It is a number from 1 to 100.')
  return count
}
