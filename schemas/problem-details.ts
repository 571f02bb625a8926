// The schemas of errors: problem details (RFC 9457) and their faults. Both are open: members may be added.
import { type Static, Type } from '@sinclair/typebox'
import { component, ref } from './component.ts'
import { listProblemTypes } from './problems.ts'

const faultCodes = ['required', 'type', 'unknown', 'range', 'length', 'text', 'format'] as const

export const FaultCode = component(
  'FaultCode',
  Type.Unsafe<(typeof faultCodes)[number]>({
    type: 'string',
    description:
      'The kind of fault: `required` (a value is missing), `type`, `unknown` (no such member or parameter), `range` (a ' +
      'number), `length` (a string), `text` (a character that is not allowed, or only spaces), `format` (anything else).',
    enum: faultCodes,
    examples: ['type'],
  }),
)

/** A fault in a request, and its location. */
export const Fault = component(
  'Fault',
  Type.Object(
    {
      code: ref(FaultCode),
      detail: Type.String({ description: 'A human-readable explanation.', examples: ['must be a string'] }),
      pointer: Type.Optional(
        Type.String({
          description:
            'JSON Pointer (RFC 6901) to the invalid part of the body. Empty if the fault applies to the whole body or request.',
          examples: ['/name'],
        }),
      ),
      parameter: Type.Optional(
        Type.String({ description: 'The query parameter or header.', examples: ['limit'] }),
      ),
    },
    {
      description: 'A fault in a request, and its location. Members may be added.',
      additionalProperties: true,
      examples: [
        { code: 'type', detail: 'must be a string', pointer: '/name' },
        { code: 'range', detail: 'must be at least 0', parameter: 'limit' },
      ],
    },
  ),
)
export type Fault = Static<typeof Fault>

export const ProblemType = component(
  'ProblemType',
  Type.Unsafe<string>({
    type: 'string',
    description:
      'The known problem types. Each is the path of a page that explains it; `about:blank` means that the status ' +
      'is sufficient.',
    enum: listProblemTypes('/'),
    examples: ['about:blank'],
  }),
)

export const Problem = component(
  'Problem',
  Type.Object(
    {
      type: Type.Union(
        [ref(ProblemType), Type.String({ description: 'Another problem type.', format: 'uri-reference' })],
        {
          description: 'A URI reference that identifies the problem type. Types may be added.',
          examples: ['about:blank'],
        },
      ),
      title: Type.String({
        description: 'A short name for the problem type.',
        examples: ['Invalid request', 'Not Found'],
      }),
      status: Type.Integer({
        description: 'The HTTP status.',
        format: 'int32',
        minimum: 400,
        maximum: 599,
        examples: [400],
      }),
      detail: Type.String({
        description: 'A human-readable explanation of the problem with this request.',
        examples: ['The request has 1 fault.'],
      }),
      errors: Type.Optional(
        Type.Array(ref(Fault), { description: 'The faults of an invalid request, at most 20.', minItems: 1 }),
      ),
    },
    {
      description: 'Problem details (RFC 9457). Members may be added.',
      additionalProperties: true,
      examples: [
        { type: 'about:blank', title: 'Not Found', status: 404, detail: 'No resource exists at this path.' },
      ],
    },
  ),
)
export type Problem = Static<typeof Problem>
