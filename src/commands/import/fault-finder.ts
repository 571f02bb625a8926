import { makeBodyCheck } from '../../validation/schema-faults.ts'
export function makePlantCheck() {
  const check = makeBodyCheck('NewPlant')
  return (value: unknown) => check(value, [])
}
