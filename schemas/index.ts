// The named schemas of the contract (`components.schemas`).
import { NewPlant, Plant, PlantList } from './plant.ts'
import { Fault, FaultCode, Problem, ProblemType } from './problem-details.ts'

export const components = [NewPlant, Plant, PlantList, Problem, ProblemType, Fault, FaultCode]
