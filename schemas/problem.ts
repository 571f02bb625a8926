// The only error shape there is: problem details (RFC 9457).
import { type Static, Type } from '@sinclair/typebox'
import { component, ref } from './component.ts'

/** One fault of a request, and where it is. */
export const Fault = component(
  'Fault',
  Type.Object(
    {
      detail: Type.String({ description: 'What is wrong.', examples: ['must be string'] }),
      pointer: Type.Optional(
        Type.String({
          description: 'Where in the body it is: a JSON Pointer (RFC 6901).',
          examples: ['/name'],
        }),
      ),
      parameter: Type.Optional(
        Type.String({ description: 'Which query parameter or header it is.', examples: ['limit'] }),
      ),
    },
    {
      description: 'One fault of a request, and where it is.',
      additionalProperties: false,
      examples: [
        { detail: 'must be string', pointer: '/name' },
        { detail: 'must be integer', parameter: 'limit' },
      ],
    },
  ),
)
export type Fault = Static<typeof Fault>

export const Problem = component(
  'Problem',
  Type.Object(
    {
      type: Type.String({
        description:
          'A URI reference that names the kind of problem; `about:blank` says no more than the status.',
        format: 'uri-reference',
        examples: ['about:blank'],
      }),
      title: Type.String({ description: 'The status in words.', examples: ['Bad Request'] }),
      status: Type.Integer({ description: 'The HTTP status.', minimum: 400, maximum: 599, examples: [400] }),
      detail: Type.String({
        description: 'What went wrong this time.',
        examples: ['The request is not valid.'],
      }),
      errors: Type.Optional(Type.Array(ref(Fault), { description: 'Every fault of a bad request.' })),
    },
    {
      description: 'Problem details (RFC 9457).',
      additionalProperties: false,
      examples: [
        {
          type: 'about:blank',
          title: 'Bad Request',
          status: 400,
          detail: 'The request has 1 fault.',
          errors: [{ detail: 'must be string', pointer: '/name' }],
        },
        { type: 'about:blank', title: 'Not Found', status: 404, detail: 'There is nothing at this path.' },
      ],
    },
  ),
)
export type Problem = Static<typeof Problem>
