// What a client of one version of the document would stumble over in another. The rules are in docs/versioning.md.
import { findGaps, type Node, resolve } from './schema-gaps.ts'

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** Two versions of one part, the documents they stand in, and the name of the part. */
type Pair = { documents: { before: Node; after: Node }; before: Node; after: Node; where: string }

/** The breaking changes from one OpenAPI document to a later one, one line for each, in a fixed order. */
export function findBreaking(before: Node, after: Node): string[] {
  const found: string[] = []
  for (const [path, item] of Object.entries<Node>(before.paths))
    for (const method of methods.filter((one) => item[one])) {
      const where = `${method.toUpperCase()} ${path}`
      const now = after.paths[path]?.[method]
      const pair = { documents: { before, after }, before: item[method], after: now, where }
      found.push(...(now ? compareOperations(pair) : [`${where}: removed`]))
    }
  return [...new Set(found)]
}

/** Whether a later version may break what the earlier one promised: its first number is higher. */
export const isMajor = (before: string, after: string) =>
  Number.parseInt(after, 10) > Number.parseInt(before, 10)

function compareOperations(pair: Pair): string[] {
  return [
    ...compareSecurity(pair),
    ...compareParameters(pair),
    ...compareBodies(resolveBoth(pair, (operation) => operation.requestBody, 'body')),
    ...Object.keys(pair.before.responses).flatMap((status) =>
      compareResponses(
        resolveBoth(pair, (operation) => operation.responses[status], status),
        status,
      ),
    ),
  ]
}

/** Whoever was let in still is: each old way in brings all that some new way asks for. */
function compareSecurity({ documents, before, after, where }: Pair): string[] {
  const brought: Node[] = before.security ?? documents.before.security ?? [{}]
  const asked: Node[] = after.security ?? documents.after.security ?? [{}]
  const isEnough = (one: Node, other: Node) =>
    Object.entries<string[]>(other).every(
      ([name, scopes]) => scopes.every((scope) => one[name]?.includes(scope)) && one[name],
    )
  const areLetIn = brought.every((one) => asked.some((other) => isEnough(one, other)))
  return areLetIn || asked.length === 0 ? [] : [`${where}: security`]
}

function compareParameters(pair: Pair): string[] {
  const { documents, where } = pair
  const before = parametersOf(documents.before, pair.before)
  const after = parametersOf(documents.after, pair.after)
  const found: string[] = []
  for (const [name, { required }] of after)
    if (required && !before.get(name)?.required) found.push(`${where} ${name}: required`)
  for (const [name, { schema }] of before) {
    const now = after.get(name)
    if (!now) found.push(`${where} ${name}: removed`)
    else
      found.push(...findRefused({ documents, before: schema, after: now.schema, where: `${where} ${name}` }))
  }
  return found
}

function compareBodies({ documents, before, after, where }: Pair): string[] {
  const found = after?.required && !before?.required ? [`${where}: required`] : []
  for (const [type, { schema }] of Object.entries<Node>(before?.content ?? {})) {
    const now = after?.content[type]
    if (!now) found.push(`${where}: ${type} removed`)
    else found.push(...findRefused({ documents, before: schema, after: now.schema, where }))
  }
  return found
}

function compareResponses(pair: Pair, status: string): string[] {
  const { documents, before, after, where } = pair
  // An error that no longer comes is no loss; a success that no longer comes is.
  if (!after) return /^[23]/.test(status) ? [`${where}: removed`] : []
  const found = Object.keys(before.headers ?? {}).flatMap((name) =>
    compareHeaders(resolveBoth(pair, (response) => response.headers?.[name], name)),
  )
  for (const [type, { schema }] of Object.entries<Node>(before.content ?? {})) {
    const now = after.content?.[type]
    if (!now) found.push(`${where}: ${type} removed`)
    else found.push(...findUnforeseen({ documents, before: schema, after: now.schema, where }))
  }
  return found
}

function compareHeaders({ documents, before, after, where }: Pair): string[] {
  if (!after) return [`${where}: removed`]
  const found = before.required && !after.required ? [`${where}: no longer on every answer`] : []
  return [...found, ...findUnforeseen({ documents, before: before.schema, after: after.schema, where })]
}

/** What could be sent, and is refused now. */
function findRefused({ documents, before, after, where }: Pair): string[] {
  const [from, to] = [
    { document: documents.before, schema: before },
    { document: documents.after, schema: after },
  ]
  return findGaps(from, to, where).map((gap) => `request ${gap}`)
}

/** What may come now and could not come before, and what no longer comes. */
function findUnforeseen({ documents, before, after, where }: Pair): string[] {
  const [from, to] = [
    { document: documents.after, schema: after },
    { document: documents.before, schema: before, isPromise: true },
  ]
  return findGaps(from, to, where).map((gap) => `answer ${gap}`)
}

function resolveBoth({ documents, ...pair }: Pair, pick: (node: Node) => Node, name: string): Pair {
  const before = resolve(documents.before, pick(pair.before))
  const after = resolve(documents.after, pick(pair.after))
  return { documents, before, after, where: `${pair.where} ${name}` }
}

function parametersOf(document: Node, { parameters = [] }: Node): Map<string, Node> {
  const resolved: Node[] = parameters.map((one: Node) => resolve(document, one))
  return new Map(resolved.map((one) => [`${one.in} ${one.name}`, one]))
}
