// Ends a connection if pg cannot parse a message, such as a request for GSSAPI. pg has no option for this: it parses in
// a listener, where an error would end the process.
import type pg from 'pg'

/** Call it before the client connects. */
export function guardParser({ connection }: pg.Client): void {
  const guard = () => {
    const { stream } = connection
    for (const parse of stream.rawListeners('data'))
      stream.off('data', parse as () => void).on('data', (bytes) => {
        try {
          parse(bytes)
        } catch (error) {
          stream.destroy(error as Error)
        }
      })
  }
  // pg attaches its parser before it emits these events.
  connection.on('connect', guard).on('sslconnect', guard)
}
