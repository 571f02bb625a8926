// The operations as the contract has them: by path and method, what each says of itself.
import type { Operations } from '../http/document.ts'
import { addSchema } from './add.ts'
import { listSchema } from './list.ts'

export const operations: Operations = { '/plants': { post: addSchema, get: listSchema } }
