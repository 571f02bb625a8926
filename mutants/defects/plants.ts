// Defects of adding and listing: what is acknowledged, which list a name stands for, where pages start.
import { type Defect, inTest } from '../defect.ts'

export const plantDefects: Defect[] = [
  {
    breaks: 'a plant is acknowledged before its batch is committed',
    file: 'src/plants/group-commit.ts',
    search: 'outcomes = await this.#log.append(',
    replacement: "outcomes = batch.map(() => 'added')\n      void this.#log.append(",
    checks: [inTest('waiting', 'a batch with no outcome fails as a whole')],
  },
  {
    breaks: 'each request of a batch is told the outcome of another',
    file: 'src/plants/group-commit.ts',
    search: 'outcomes[index] as Outcome',
    replacement: 'outcomes.at(-1 - index) as Outcome',
    checks: [inTest('adding', 'SQLite', 'of many requests with one id')],
  },
  {
    breaks: 'a list shows a head that was read before the request came',
    file: 'src/plants/shared-head.ts',
    search: 'this.#waiting = []\n    if (waiting.length > 0) await this.#lookFor(waiting)',
    replacement: 'if (waiting.length > 0) await this.#lookFor(this.#waiting)\n    this.#waiting = []',
    checks: [inTest('waiting', 'a look at the head is for those who came before it')],
  },
  {
    breaks: 'a cursor outlives the plants that it counts',
    file: 'src/plants/cursor.ts',
    search: 'after:${position}:${epoch}',
    replacement: 'after:${position}',
    checks: [inTest('epochs', 'a cursor into what was cut')],
  },
  {
    breaks: 'an ETag leaves the epoch out: two histories have one name',
    file: 'src/plants/pages.ts',
    search: '${epochs.owner(last)}.${itemFormat}',
    replacement: '${itemFormat}',
    checks: [inTest('epochs', 'lists that lost plants have other names')],
  },
  {
    breaks: 'the name of a page does not say where it ends: the cache gives a stale one',
    file: 'src/plants/pages.ts',
    search: '.${after}-${last}`',
    replacement: '.${after}`',
    checks: [inTest('listing', 'SQLite', 'the ETag names the content')],
  },
  {
    breaks: 'If-Match is compared weakly',
    file: 'src/plants/etag.ts',
    search: '!weak && tag === etag',
    replacement: 'tag === etag',
    checks: [inTest('listing', 'SQLite', 'a list that If-Match does not name')],
  },
  {
    breaks: 'If-None-Match is disregarded',
    file: 'src/plants/list.ts',
    search: 'return ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, etag)',
    replacement: 'return ifNoneMatch === etag && matchesStrongly(ifNoneMatch, etag)',
    checks: [inTest('listing', 'SQLite', 'If-None-Match gives 304')],
  },
  {
    breaks: 'limit=0 has a link to a next page, for ever',
    file: 'src/plants/list.ts',
    search: 'page.last < head.position && limit > 0',
    replacement: 'page.last < head.position',
    checks: [inTest('listing', 'SQLite', 'a limit cuts the list')],
  },
  {
    breaks: 'a list that breaks off ends like a whole one',
    file: 'src/plants/list.ts',
    search: 'reply.request.raw.socket.resetAndDestroy()',
    replacement: 'reply.request.raw.socket.destroySoon()',
    checks: [inTest('streams', 'HTTP/1.0')],
  },
]
