// Makes a logger for commands: a person reads what it says.
import pino, { type Logger } from 'pino'

/** Says each warning that has a reason, in one line; whatever else is wrong the command says itself. */
export function tellWarnings(say: (line: string) => void): Logger {
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    if (reason !== undefined) say(`${msg}: ${reason}`)
  }
  return pino({ level: 'warn' }, { write })
}
