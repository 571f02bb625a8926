// The operations, a row for each.
import type { Operation } from '../http/operation.ts'
import { addSchema } from './add/add-route.ts'
import { listSchema } from './list/list-route.ts'

export const add: Operation = {
  method: 'POST',
  url: '/plants',
  scope: 'plants:write',
  // Until the log has it; from then on its outcome is unknown.
  late: 'nothing-added',
  schema: addSchema,
}

export const list: Operation = {
  method: 'GET',
  url: '/plants',
  scope: 'plants:read',
  late: 'unread',
  schema: listSchema,
}

export const operations = [add, list]
