// Checks that every error response must pass.
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Test } from 'tap'
import { components } from '../../schemas/index.ts'
import type { Problem } from '../../schemas/problem-details.ts'
import { type ProblemTypeName, problemTypes } from '../../schemas/problems.ts'

const formats = { 'uri-reference': true, int32: true, int64: true } as const
const ajv = new Ajv2020({ strict: true, allErrors: true, formats })
for (const schema of components) ajv.addSchema(schema)

const typedStatuses = new Set<number>(Object.values(problemTypes).map(({ status }) => status))

export type AnyAnswer = { status: number; headers: Headers; text: string }

/** Asserts everything that applies to each problem with a status; returns the body. */
export function assertProblem(t: Test, answer: AnyAnswer, status: number): Problem {
  t.equal(answer.status, status)
  t.match(answer.headers.get('content-type'), /^application\/problem\+json(; charset=utf-8)?$/)
  t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  t.equal(answer.headers.get('cache-control'), 'no-store')
  const problem = JSON.parse(answer.text) as Problem
  t.ok(ajv.validate('Problem', problem), ajv.errorsText())
  t.equal(problem.status, status)
  const name = /\/problems\/([a-z-]+)$/.exec(problem.type)?.[1] as ProblemTypeName | undefined
  if (name === undefined) t.equal(problem.type, 'about:blank')
  else t.match(problemTypes[name], { status, title: problem.title })
  t.equal(name !== undefined, typedStatuses.has(status), 'a type tells the meanings of a status apart')
  t.equal(status === 400, problem.errors !== undefined, 'a 400 names its faults, and nothing else does')
  for (const { pointer, parameter } of problem.errors ?? [])
    t.ok((pointer === undefined) !== (parameter === undefined), 'a fault has either a pointer or a parameter')
  if (status === 401 || status === 403)
    t.match(answer.headers.get('www-authenticate'), /^Bearer realm="plant-store"/)
  if (status === 405) t.match(answer.headers.get('allow'), /^[A-Z]+(, [A-Z]+)*$/)
  return problem
}
