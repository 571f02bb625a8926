// Why an import cannot go on. A record that is merely wrong is rejected, and the import does.

/** The rest of the input cannot be read. */
export class InputError extends Error {
  /** Known by it as a fault of the input, and not of the program. */
  readonly code = 'ERR_INPUT'
  readonly reason: string
  readonly line: number | undefined

  /** `line`: where it is, counted from 1. */
  constructor(reason: string, line?: number) {
    super(reason)
    this.reason = reason
    this.line = line
  }

  /** The same, with the place in words. */
  in(name: string): InputError {
    const place = this.line === undefined ? name : `${name}, line ${this.line}`
    return Object.assign(new InputError(this.reason, this.line), { message: `${place}: ${this.reason}` })
  }
}

/** A file cannot be read or written at all. */
export class FileError extends Error {
  readonly code = 'ERR_FILE'

  constructor(verb: 'read' | 'write', name: string, { message }: Error) {
    super(`cannot ${verb} ${name}: ${message}`)
  }
}
