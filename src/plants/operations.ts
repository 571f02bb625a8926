// The schemas of the operations for the contract, by path and method.
import type { Operations } from '../http/openapi-document.ts'
import { addSchema } from './add/add-route.ts'
import { listSchema } from './list/list-route.ts'

export const operations: Operations = { '/plants': { post: addSchema, get: listSchema } }
