// The error that ends an import. A wrong record does not: it is rejected.

/** The rest of the input cannot be read. */
export class InputError extends Error {
  /** Tells it from an error of the program. */
  readonly code = 'ERR_INPUT'
  readonly line: number | undefined

  /** `line`: counted from 1. */
  constructor(reason: string, line?: number) {
    super(reason)
    this.line = line
  }

  /** The same error with the name of the input and the line in its message. */
  in(name: string): InputError {
    const place = this.line === undefined ? name : `${name}, line ${this.line}`
    return new InputError(`${place}: ${this.message}`, this.line)
  }
}
