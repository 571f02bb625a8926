// All named shapes of the contract: what stands in `components.schemas`.
import { NewPlant, Plant, PlantList } from './plant.ts'
import { Fault, FaultCode, Problem } from './problem.ts'

export const components = [NewPlant, Plant, PlantList, Problem, Fault, FaultCode]
