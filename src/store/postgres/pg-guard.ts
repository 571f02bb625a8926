// Keeps a server that sends malformed messages from blocking or ending the process. pg has no option for either: importing
// this file changes how pg-protocol reads texts, and each client needs `guardParser`.
import type pg from 'pg'
import { BufferReader } from 'pg-protocol/dist/buffer-reader.js'

// pg-protocol reads an error that lacks its last NUL for ever: past the end of the bytes, every text is empty.
const readString = BufferReader.prototype.string
BufferReader.prototype.string = function (length) {
  const text = readString.call(this, length)
  if (text === '' && length > 0) throw new Error('the server sent a message that does not end')
  return text
}

/** Ends the connection if pg cannot parse a message: pg parses in a listener, whose error would end the process. */
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
  // pg begins to parse before it emits these.
  connection.on('connect', guard).on('sslconnect', guard)
}
