// Ends connections whose clients may still be sending.
import type { Socket } from 'node:net'
import { lingerBytes, lingerMs, maxLingering } from '../../limits.ts'

/** Such connections that are read in the next turn. State of the module: they share the turns of one event loop. */
let lingering = 0

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
    if (left < 0 || lingering >= maxLingering) return void socket.destroy()
    lingering++
    socket.pause()
    setImmediate(() => {
      lingering--
      socket.resume()
    })
  })
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}
