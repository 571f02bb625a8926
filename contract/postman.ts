// An import into Postman: once the token and the base URL are filled in, its requests succeed as they are.
import { readFileSync } from 'node:fs'
import { load, type Outcome, type Subject, versionOf } from './tools.ts'

// biome-ignore lint/suspicious/noExplicitAny: Postman's objects are passed on, not known.
type Any = any
type Answer = { request: string; status: number }

export async function checkWithPostman({ file, url, token }: Subject): Promise<Outcome> {
  const failures: string[] = []
  const text = readFileSync(file, 'utf8')
  // The importer's own settings send every optional parameter: a condition, which additions do not have, and a cursor
  // that no store has made.
  const all = await send(await importDocument(text, {}), url, token)
  const unexplained = all.filter(({ request, status }) => status !== (request === 'POST' ? 412 : 400))
  failures.push(...unexplained.map((answer) => `with all parameters: ${JSON.stringify(answer)}`))
  const plain = await send(await importDocument(text, { enableOptionalParameters: false }), url, token)
  const failed = plain.filter(({ status }) => status !== 200)
  failures.push(...failed.map((answer) => `without optional parameters: ${JSON.stringify(answer)}`))
  return {
    tool: 'Postman (import, runtime)',
    version: `${versionOf('openapi-to-postmanv2')}, ${versionOf('postman-runtime')}`,
    cases: all.length + plain.length,
    failures,
    explained: all.length - unexplained.length,
  }
}

function importDocument(data: string, options: object): Promise<Any> {
  const importer = load('openapi-to-postmanv2')
  const settings = { parametersResolution: 'Example', ...options }
  return new Promise((resolve, reject) =>
    importer.convertV2({ type: 'string', data }, settings, (error: unknown, result: Any) => {
      if (error || !result.result) reject(error ?? new Error(result.reason))
      else resolve(result.output[0].data)
    }),
  )
}

/** Sends all requests of a collection, in order, with the two things filled in that a user has to fill in. */
function send(collection: Any, baseUrl: string, bearerToken: string): Promise<Answer[]> {
  const { Collection, VariableScope } = load('postman-collection')
  const { Runner } = load('postman-runtime')
  const environment = new VariableScope({
    values: Object.entries({ baseUrl, bearerToken }).map(([key, value]) => ({ key, value })),
  })
  const answers: Answer[] = []
  return new Promise((resolve, reject) => {
    new Runner().run(new Collection(collection), { environment }, (error: unknown, run: Any) => {
      if (error) return reject(error)
      run.start({
        response: (failed: unknown, _cursor: Any, response: Any, request: Any) =>
          answers.push({ request: request.method, status: failed ? 0 : response.code }),
        done: (failed: unknown) => (failed ? reject(failed) : resolve(answers)),
      })
    })
  })
}
