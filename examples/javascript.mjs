// Adds two plants and prints the whole list, page by page. Plain fetch: Node 20 or newer, Deno or Bun.
// Usage: BASE_URL=http://127.0.0.1:3000 TOKEN=plant_… node javascript.mjs
const { BASE_URL, TOKEN } = process.env
const maxAttempts = 5

/** Sends a request, and retries it if it fails. The request must be safe to retry. */
async function ask(url, init = {}) {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt === maxAttempts
    try {
      // A redirected POST would become a GET, whose response would look like a successful addition.
      const signal = AbortSignal.timeout(10_000)
      const response = await fetch(url, { ...init, headers, redirect: 'error', signal })
      // An attempt includes reading the body: the connection may fail in the middle of it.
      const body = await response.json()
      if (response.ok) return { body, link: response.headers.get('link') }
      if (isLast || ![408, 429, 500, 502, 503, 504].includes(response.status)) throw new Refused(body)
      await pause(attempt, Number(response.headers.get('retry-after')) || 0)
    } catch (error) {
      if (isLast || error instanceof Refused) throw error
      await pause(attempt)
    }
  }
}

/** A problem (RFC 9457) that a retry does not solve. */
class Refused extends Error {
  constructor(problem) {
    const faults = (problem.errors ?? []).map(
      ({ pointer, parameter, detail }) => `${pointer ?? parameter}: ${detail}`,
    )
    super([`${problem.status} ${problem.title}: ${problem.detail}`, ...faults].join('\n'))
    this.problem = problem
  }
}

/** Waits for Retry-After plus a random time that grows with each attempt, so that clients do not all retry at once. */
function pause(attempt, seconds = 0) {
  const ms = seconds * 1000 + Math.random() * 100 * 2 ** attempt
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** The id makes additions safe to retry: the service adds the plant once. */
function randomId() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2))
  return (high >>> 11) * 2 ** 32 + low
}

async function add(plant) {
  const body = JSON.stringify({ id: randomId(), ...plant })
  return (await ask(`${BASE_URL}/plants`, { method: 'POST', body })).body
}

async function* all(pageSize = 100) {
  let url = `${BASE_URL}/plants?limit=${pageSize}`
  while (url) {
    const { body, link } = await ask(url)
    yield* body
    const [, next] = /<([^>]*)>; rel="next"/.exec(link ?? '') ?? []
    url = next && new URL(next, url)
  }
}

console.log(await add({ name: 'Black alder', tag: 'Alnus glutinosa' }))
console.log(await add({ name: 'Grey alder', tag: 'Alnus incana' }))
for await (const { name, tag } of all()) console.log(`${name} (${tag})`)
