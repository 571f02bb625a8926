// Small answers: a page that is cached in a coding beside the plain one, and the whole list through a coding.
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Bench } from '../bench.ts'
import { type Coded, fetchCoded, getList, getWholeList, startPlantStore } from '../contenders.ts'
import { type Findings, makeRows } from '../findings.ts'
import { atMost, leastAtMost, reach } from '../goals.ts'
import type { RequestKind } from '../load/job.ts'
import { type Contender, measureRounds, type Round } from '../rounds.ts'
import type { Server } from '../server.ts'
import { makeStore } from '../stores.ts'
import type { Scenario } from './scenario.ts'

const pollMs = 20
const maxPolls = 250

export const codings: Scenario = {
  name: 'codings',
  title: 'compressed lists beside plain ones',
  async run(bench) {
    const server = await startPlantStore(bench, {
      databaseUrl: await makeStore(bench, bench.options.listPlants),
    })
    const page = await comparePages(bench, server)
    const list = await compareLists(bench, server)
    return { rows: [...page.rows, ...list.rows], goals: [...page.goals, ...list.goals] }
  },
}

async function comparePages(bench: Bench, server: Server): Promise<Findings> {
  const work = 'GET ?limit=100 in gzip, 32 connections'
  const inGzip = accept(getList, 'gzip')
  const [plain, coded] = [await fetchCoded(server, getList), await fetchPage(server, inGzip)]
  checkSame(plain.bytes, gunzipSync(coded.bytes))
  const { rows, ours, base } = await compare(bench, work, [
    { server, request: getList, connections: 32 },
    { server, request: inGzip, connections: 32 },
  ])
  return {
    rows,
    goals: [
      leastAtMost({ work, figure: 'CPU per request / plain' }, [ours, base], reach.codedCpu),
      atMost(work, 'bytes / plain', coded.bytes.length / plain.bytes.length, reach.codedBytes),
    ],
  }
}

async function compareLists(bench: Bench, server: Server): Promise<Findings> {
  const work = `whole list of ${bench.options.listPlants.toLocaleString('en')} plants in zstd`
  const inZstd = accept(getWholeList, 'zstd')
  const plain = await fetchCoded(server, getWholeList)
  const coded = requireCoding(await fetchCoded(server, inZstd), 'zstd')
  checkSame(plain.bytes, zstdDecompressSync(coded.bytes))
  const { rows, ours, base } = await compare(bench, work, [
    { server, request: getWholeList, connections: 1, lists: 1 },
    { server, request: inZstd, connections: 1, lists: 1 },
  ])
  return {
    rows,
    goals: [
      atMost(work, 'bytes / plain', coded.bytes.length / plain.bytes.length, reach.zstdBytes),
      leastAtMost({ work, figure: 'wall time / plain', by: 'p50Ms' }, [ours, base], reach.zstdTime),
    ],
  }
}

async function compare(bench: Bench, work: string, contenders: Contender[]) {
  const results = await measureRounds(bench, contenders)
  const names = ['Plant Store, plain', 'Plant Store, compressed'].map((name) => ({ name }))
  const [base, ours] = results as [Round[], Round[]]
  return { rows: makeRows(work, names, results, undefined), base, ours }
}

function accept(request: RequestKind, coding: string): RequestKind {
  return { ...request, headers: { ...request.headers, 'Accept-Encoding': coding } }
}

/** A page that is not compressed yet comes as it is: asks until it is. */
async function fetchPage(server: Server, request: RequestKind): Promise<Coded> {
  for (let poll = 0; poll < maxPolls; poll++) {
    const answer = await fetchCoded(server, request)
    if (answer.coding !== undefined) return requireCoding(answer, 'gzip')
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  throw new Error('the server disregards Accept-Encoding: no page came in gzip')
}

function requireCoding(answer: Coded, coding: string): Coded {
  if (answer.coding === coding) return answer
  throw new Error(
    `the server disregards Accept-Encoding: ${coding}; the answer came in ${answer.coding ?? 'none'}`,
  )
}

function checkSame(plain: Buffer, decoded: Buffer): void {
  if (!plain.equals(decoded)) throw new Error('the compressed answer has other bytes than the plain one')
}
