// Ends connections whose clients may still be sending.
import type { Socket } from 'node:net'
import { lingerBytes, lingerMs, lingerReads, maxLingering } from '../../limits.ts'

/** Connections being ended. State of the module, because a thread has one event loop, whose turns they share. */
const lingering: Socket[] = []

function readOn(): void {
  for (const socket of lingering.splice(0, lingerReads)) socket.resume()
  /* c8 ignore next: it takes a flood, as in test/http/flood.slow.ts, whose service is a process of its own */
  if (lingering.length > 0) setImmediate(readOn)
}

/**
 * Ends a connection so that the answer arrives: closing it while the client is still sending would reset it and lose
 * the answer (RFC 9112, section 9.6). A bounded part of what is sent is read, a little per turn, and dropped unparsed.
 */
export function endGently(socket: Socket): void {
  let left = lingerBytes
  Reflect.deleteProperty(socket, 'resume')
  socket.end()
  // Node's server resumes a socket that it stopped only while it is the only listener for data.
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
