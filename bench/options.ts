// The bench's command line.
import { resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'

export type Options = ReturnType<typeof readOptions>

/** Reads argv; prints and exits on --help and on what it does not understand. */
export function readOptions(argv: string[], scenarios: string[]) {
  const given = new Command('bench')
    .description('Measures Plant Store beside a bare node:http server and other frameworks.')
    .option('--quick', 'short rounds and small stores: for orientation only, in little more than a minute')
    .addOption(new Option('--only <name...>', 'only these scenarios').choices(scenarios))
    .option('--rounds <n>', 'how many rounds each server gets', readCount)
    .option('--seconds <n>', 'how long a round is', readCount)
    .option('--postgres <url>', 'an empty PostgreSQL database to use instead of one of its own')
    .option('--before <directory>', 'another checkout of Plant Store, to hold this one against')
    .option('--output <directory>', 'where the results go instead of bench/results')
    .parse(argv)
    .opts()
  const quick = given.quick === true
  const roundMs: number = given.seconds ? given.seconds * 1000 : quick ? 300 : 1000
  const listPlants = quick ? 100_000 : 1_000_000
  return {
    quick,
    only: (given.only ?? scenarios) as string[],
    rounds: (given.rounds ?? (quick ? 2 : 7)) as number,
    roundMs,
    warmUpMs: quick ? 300 : 2000,
    /** How long slices may be repeated because others disturbed them: in one scenario, and in all. */
    repeatMs: { scenario: roundMs * (quick ? 2 : 6), all: roundMs * (quick ? 10 : 60) },
    /** How often a server is started whose start is measured. */
    starts: quick ? 3 : 12,
    postgres: given.postgres as string | undefined,
    output: given.output as string | undefined,
    /** Another checkout, absolute. */
    before: given.before === undefined ? undefined : resolve(given.before),
    /** How many plants the whole list has, also in words, and how many the large store. */
    listPlants,
    listName: `${listPlants.toLocaleString('en')} plants`,
    largePlants: quick ? 100_000 : 10_000_000,
  }
}

function readCount(text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || count < 1 || count > 100)
    throw new InvalidArgumentError('Expected a number from 1 to 100.')
  return count
}
