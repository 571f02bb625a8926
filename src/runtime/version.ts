// Moved to ../version.ts.
export * from '../version.ts'
