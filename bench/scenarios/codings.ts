// Small answers: a page that is cached in a coding beside the plain one, and the whole list through a coding.
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Bench } from '../bench.ts'
import { fetchAnswer, getWholeList, pages, startPlantStore } from '../contenders.ts'
import { type Contest, compare, type Finding, type Scenario } from '../findings.ts'
import { atMost, leastAtMost, type Reach } from '../goals.ts'
import type { RequestKind } from '../load/job.ts'
import type { Work } from '../rounds.ts'
import type { Server } from '../server.ts'

const pollMs = 20
const maxPolls = 250

export const codings: Scenario = {
  name: 'codings',
  title: 'compressed lists beside plain ones',
  async run(bench) {
    const server = await startPlantStore(bench, { plants: bench.options.listPlants })
    const page = await compareCoding(bench, server, {
      work: 'GET ?limit=100 in gzip, 32 connections',
      load: pages,
      coding: 'gzip',
      bytes: [0.3, 0.25],
      judge: ([plain, coded]) => [leastAtMost('CPU per request / plain', [coded, plain], [1.05, 1])],
    })
    const list = await compareCoding(bench, server, {
      work: `whole list of ${bench.options.listName} in zstd`,
      load: { request: getWholeList, connections: 1, times: 1 },
      coding: 'zstd',
      bytes: [0.25, 0.2],
      judge: ([plain, coded]) => [leastAtMost('wall time / plain', [coded, plain], [2.5, 1.5], 'p50Ms')],
    })
    return [...page, ...list]
  },
}

/** `bytes`: the share of the plain ones. */
type Coded = Pick<Required<Contest>, 'work' | 'judge'> & {
  load: Work
  coding: keyof typeof decoders
  bytes: Reach
}

const decoders = { gzip: gunzipSync, zstd: zstdDecompressSync }

async function compareCoding(bench: Bench, server: Server, coded: Coded): Promise<Finding[]> {
  const { work, load, coding, bytes, judge } = coded
  const { request } = load
  const inCoding = { ...request, headers: { ...request.headers, 'Accept-Encoding': coding } }
  const plain = (await fetchAnswer(server, request)).bytes
  const small = await fetchCoded(server, inCoding, coding)
  if (!plain.equals(decoders[coding](small)))
    throw new Error('the compressed answer has other bytes than the plain one')
  return compare(bench, {
    work,
    ...load,
    servers: ['Plant Store, plain', 'Plant Store, compressed'].map((name) => ({ ...server, name })),
    each: [{}, { request: inCoding }],
    judge: (results) => [...judge(results), atMost('bytes / plain', small.length / plain.length, bytes)],
  })
}

/** A page that is not compressed yet comes as it is: asks until it is. */
async function fetchCoded(server: Server, request: RequestKind, coding: string): Promise<Buffer> {
  for (let poll = 0; poll < maxPolls; poll++) {
    const { headers, bytes } = await fetchAnswer(server, request)
    if (headers['content-encoding'] === coding) return bytes
    await sleep(pollMs)
  }
  throw new Error(`the server disregards Accept-Encoding: no answer came in ${coding}`)
}
