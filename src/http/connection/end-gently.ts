// The end of a connection whose client may still be sending.
import type { Socket } from 'node:net'
import { lingerBytes, lingerMs, lingerReads, maxLingering } from '../../limits.ts'

/** State of the module, because a thread has one event loop: connections that end, and were read in a turn of it. */
const lingering: Socket[] = []

function readOn(): void {
  for (const socket of lingering.splice(0, lingerReads)) socket.resume()
  /* c8 ignore next: it takes a flood, as in test/http/flood.slow.ts, whose service is a process of its own */
  if (lingering.length > 0) setImmediate(readOn)
}

/**
 * Ends a connection so that the answer arrives: closing it while the client is still sending would reset it, and the
 * answer would be lost with it (RFC 9112, 9.6). Some of what is sent is read, a little of it in each turn, and dropped unparsed.
 */
export function endGently(socket: Socket): void {
  let left = lingerBytes
  Reflect.deleteProperty(socket, 'resume')
  socket.end()
  // Node's server reads again where it has stopped only as long as nobody else listens for what comes.
  socket.emit('resume')
  socket.removeAllListeners('data')
  socket.on('data', ({ length }) => {
    left -= length
    socket.pause()
    if (left < 0 || lingering.length >= maxLingering) socket.destroy()
    else if (lingering.push(socket) === 1) setImmediate(readOn)
  })
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}
