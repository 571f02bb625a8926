// All deliberate defects. They are numbered from 1, in this order.
import type { Defect } from './defect.ts'
import { accessDefects } from './defects/access.ts'
import { httpDefects } from './defects/http.ts'
import { limitDefects } from './defects/limits.ts'
import { operationDefects } from './defects/operations.ts'
import { plantDefects } from './defects/plants.ts'
import { postgresDefects } from './defects/postgres.ts'
import { sqliteDefects } from './defects/sqlite.ts'

export const defects: readonly Defect[] = [
  ...plantDefects,
  ...httpDefects,
  ...accessDefects,
  ...sqliteDefects,
  ...postgresDefects,
  ...operationDefects,
  ...limitDefects,
]
