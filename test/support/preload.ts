// Faults that nobody foresaw, in a process of its own: code that runs before the program, and breaks something below it.

/** The environment of a process that runs the module `code` first, in each of its threads. */
export function preload(code: string): NodeJS.ProcessEnv {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}
