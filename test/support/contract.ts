// Compares responses with openapi.yaml, and records which documented responses were seen.
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse } from 'yaml'

/** A response. `path`: of the request, below the base path and without its query. `body`: undefined if unknown. */
export type Seen = {
  method: string
  path: string
  status: number
  headers: { get(name: string): string | null }
  body?: string | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: a document of any form.
type Node = any

const source = fileURLToPath(new URL('../../openapi.yaml', import.meta.url))
/** The responses that tests have seen: one file per process. */
const directory = fileURLToPath(new URL('../../.tap/contract', import.meta.url))
const kept = `${directory}/document.json`

let document: Node
let ajv: Ajv2020 | undefined
const seen = new Set<string>()

/** The document on disk. Parsing YAML takes long, so the first process stores it as JSON for the others. */
export function readDocument(): Node {
  document ??= isKept() ? JSON.parse(readFileSync(kept, 'utf8')) : keep(parse(readFileSync(source, 'utf8')))
  return document
}

function isKept(): boolean {
  const copy = statSync(kept, { throwIfNoEntry: false })
  return copy !== undefined && copy.mtimeMs > statSync(source).mtimeMs
}

function keep(parsed: Node): Node {
  mkdirSync(directory, { recursive: true })
  const draft = `${kept}.${process.pid}`
  writeFileSync(draft, JSON.stringify(parsed))
  renameSync(draft, kept)
  return parsed
}

/** Resolves references in the document: returns the node, and the pointer to it. */
export function resolve(pointer: string): { node: Node; pointer: string } {
  let node = readDocument()
  for (const step of pointer.split('/').slice(1))
    node = node?.[step.replaceAll('~1', '/').replaceAll('~0', '~')]
  return node?.$ref ? resolve(node.$ref.slice(1)) : { node, pointer }
}

const escapeStep = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** Every object of a document with its JSON Pointer. */
export function* walk(node: Node, pointer = ''): Generator<[pointer: string, node: Node]> {
  if (typeof node !== 'object' || node === null) return
  yield [pointer, node]
  for (const [name, child] of Object.entries(node)) yield* walk(child, `${pointer}/${escapeStep(name)}`)
}

/** The name of a response, or of one of its headers. */
export function nameSeen(operation: string, status: string | number, header = ''): string {
  return [operation, status, header.toLowerCase()].join(' ').trim()
}

/** Records a response. Returns in words where it contradicts the document. */
export function findContractFaults(answer: Seen): string[] {
  const { method, path, status } = answer
  const place = `/paths/${escapeStep(path)}/${method.toLowerCase()}`
  const operation = resolve(place).node
  if (!operation) return status < 400 ? [] : checkBody(answer, 'application/problem+json', problemPointer)
  const { node: response, pointer } = resolve(`${place}/responses/${status}`)
  if (!response) return [tell(answer, 'is not documented')]
  return [...checkHeaders(answer, response), ...checkContent(answer, response, pointer)]
}

function checkHeaders(answer: Seen, response: Node): string[] {
  const { method, path, status, headers } = answer
  const operation = `${method} ${path}`
  note(nameSeen(operation, status))
  return Object.keys(response.headers ?? {}).flatMap((name) => {
    const found = headers.get(name)
    const { required, schema } = resolve(response.headers[name].$ref.slice(1)).node
    if (found === null) return required ? [tell(answer, `lacks the header ${name}`)] : []
    note(nameSeen(operation, status, name))
    return schema.enum?.includes(found) === false ? [tell(answer, `has another ${name}: ${found}`)] : []
  })
}

function checkContent(answer: Seen, response: Node, pointer: string): string[] {
  // The method of a request is unknown if its head did not arrive.
  if (answer.method === 'HEAD' && answer.status === 408) return []
  const [type] = Object.keys(response.content ?? {})
  if (type !== undefined) return checkBody(answer, type, `${pointer}/content/${escapeStep(type)}/schema`)
  return answer.body ? [tell(answer, 'has a body, which is not documented')] : []
}

const problemPointer = '/components/schemas/Problem'

function checkBody(answer: Seen, type: string, pointer: string): string[] {
  const { method, headers, body } = answer
  const found = headers.get('content-type')?.split(';')[0]
  if (found !== type && !(method === 'HEAD' && found === undefined))
    return [tell(answer, `has the media type ${found} instead of ${type}`)]
  if (method === 'HEAD' || body === undefined || headers.get('content-encoding') !== null) return []
  const validate = validator(pointer)
  return validate(JSON.parse(body))
    ? []
    : [tell(answer, `has another body: ${JSON.stringify(validate.errors)}`)]
}

function validator(pointer: string) {
  if (!ajv) {
    ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema(readDocument(), 'contract', false, false)
  }
  const validate = ajv.getSchema(`contract#${pointer}`)
  if (!validate) throw new Error(`the document has no schema at ${pointer}`)
  return validate
}

function tell({ method, path, status }: Seen, fault: string): string {
  return `the answer ${status} to ${method} ${path} ${fault}`
}

function note(name: string): void {
  if (seen.size === 0) process.once('exit', save)
  seen.add(name)
}

function save(): void {
  mkdirSync(directory, { recursive: true })
  writeFileSync(`${directory}/seen-${process.pid}-${Date.now()}.json`, JSON.stringify([...seen]))
}

/** Fails if the contract has a response or header that no test has seen. */
function checkCoverage(): void {
  const documented = Object.entries<object>(readDocument().paths).flatMap(([path, item]) =>
    Object.entries<{ responses?: object }>(item as never).flatMap(([method, { responses = {} }]) =>
      Object.keys(responses).flatMap((status) => {
        const place = `/paths/${path.replaceAll('/', '~1')}/${method}/responses/${status}`
        const headers = Object.keys(resolve(place).node.headers ?? {})
        return ['', ...headers].map((header) => nameSeen(`${method.toUpperCase()} ${path}`, status, header))
      }),
    ),
  )
  const files = globSync(`${directory}/seen-*.json`)
  const known = new Set<string>(files.flatMap((file) => JSON.parse(readFileSync(file, 'utf8'))))
  // The next run starts without records.
  for (const file of files) rmSync(file)
  const missing = documented.filter((name) => !known.has(name))
  for (const name of missing) console.error(`never seen: ${name}`)
  console.log(
    `${documented.length - missing.length} of ${documented.length} answers and headers of the contract seen`,
  )
  if (missing.length > 0) process.exitCode = 1
}

// node package/node.js test/support/contract.ts, after a whole run.
if (import.meta.main) checkCoverage()
