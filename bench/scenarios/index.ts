// All scenarios, in the order in which they run.
import { accessLog } from './access-log.ts'
import { add } from './add.ts'
import { backup } from './backup.ts'
import { before } from './before.ts'
import { beforePostgres } from './before-postgres.ts'
import { besideImport } from './beside-import.ts'
import { besideLists } from './beside-lists.ts'
import { codings } from './codings.ts'
import { exportFile } from './export.ts'
import { importFiles } from './import.ts'
import { importPostgres } from './import-postgres.ts'
import { largeStore } from './large-store.ts'
import { lightLoad } from './light-load.ts'
import { list } from './list.ts'
import { mixed } from './mixed.ts'
import { postgres } from './postgres.ts'
import type { Scenario } from './scenario.ts'
import { slowDisk } from './slow-disk.ts'
import { start } from './start.ts'
import { threads } from './threads.ts'
import { unchanged } from './unchanged.ts'
import { wholeList } from './whole-list.ts'

export const scenarios: Scenario[] = [
  list,
  unchanged,
  add,
  accessLog,
  mixed,
  threads,
  codings,
  lightLoad,
  start,
  wholeList,
  besideLists,
  largeStore,
  slowDisk,
  postgres,
  importFiles,
  importPostgres,
  exportFile,
  backup,
  besideImport,
  before,
  beforePostgres,
]
