// The operations as the contract has them: by path and method, what each says of itself.
import type { Operations } from '../http/openapi-document.ts'
import { addSchema } from './add/add-route.ts'
import { listSchema } from './list/list-route.ts'

export const operations: Operations = { '/plants': { post: addSchema, get: listSchema } }
