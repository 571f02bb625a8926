// An answer of each problem type, for its page.
import { type ProblemTypeName, problemTypes } from '../../schemas/problem-types.ts'

const details: Record<ProblemTypeName, string> = {
  'invalid-request': 'The request has 1 fault.',
  'id-conflict': 'A plant with this id already exists with a different name or tag.',
  'precondition-failed': 'The list is not one that If-Match names.',
  'rate-limited': 'Too many requests.',
  'nothing-added': 'The store cannot take plants now; nothing was added.',
  'outcome-unknown':
    'The store stopped while it worked on the request; whether the plant was added is unknown.',
  unread: 'The store cannot be read now.',
  overloaded: 'Too much is on its way to clients already.',
}

export const problemExamples = Object.fromEntries(
  Object.entries(problemTypes).map(([name, { title, status }]) => [
    name,
    [
      {
        type: `/problems/${name}`,
        title,
        status,
        detail: details[name as ProblemTypeName],
        ...(name === 'invalid-request' && {
          errors: [{ code: 'required', detail: 'is required', pointer: '/name' }],
        }),
      },
    ],
  ]),
) as unknown as Record<ProblemTypeName, object[]>
