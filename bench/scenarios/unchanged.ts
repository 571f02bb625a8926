// GET of a list that the client has: the answer is 304, without a body.
import { getList, startBare, startPlantStore } from '../contenders.ts'
import { makeRows } from '../findings.ts'
import { leastAtMost, reach } from '../goals.ts'
import { measureRounds, type Round } from '../rounds.ts'
import type { Scenario } from './scenario.ts'

const title = 'GET ?limit=100 answered 304, 32 connections'

export const unchanged: Scenario = {
  name: 'unchanged',
  title,
  async run(bench) {
    const ours = await startPlantStore(bench)
    const bare = await startBare(bench, ours)
    // As the load asks for it: fetch would accept, and get the tag of, a compressed page.
    const plain = { ...getList.headers, 'Accept-Encoding': 'identity' }
    const first = await fetch(ours.url + getList.path, { headers: plain })
    await first.arrayBuffer()
    const headers = { ...getList.headers, 'If-None-Match': first.headers.get('etag') ?? '' }
    const request = { ...getList, status: 304, headers }
    const results = await measureRounds(bench, [
      { server: bare, connections: 32, request: { ...request, path: '/unchanged' } },
      { server: ours, connections: 32, request },
    ])
    const [floor, measured] = results as [Round[], Round[]]
    return {
      rows: makeRows(title, [bare, ours], results, 0),
      goals: [
        leastAtMost({ work: title, figure: 'CPU per request / bare' }, [measured, floor], reach.unchangedCpu),
      ],
    }
  },
}
