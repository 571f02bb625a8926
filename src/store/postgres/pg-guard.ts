// Prevents malformed messages of a server from blocking or ending the process, for which pg has no option. Importing
// this file changes how pg-protocol reads strings. Call `guardParser` for each client.
import type pg from 'pg'
import { BufferReader } from 'pg-protocol/dist/buffer-reader.js'

// pg-protocol would loop on an error without its final NUL: past the end of the bytes, every string is empty.
const readString = BufferReader.prototype.string
BufferReader.prototype.string = function (length) {
  const text = readString.call(this, length)
  if (text === '' && length > 0) throw new Error('the server sent a message that does not end')
  return text
}

/** Ends the connection if pg cannot parse a message. pg parses in a listener, where an error would end the process. */
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
