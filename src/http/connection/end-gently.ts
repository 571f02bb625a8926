// Ends connections whose clients may still be sending.
import type { Socket } from 'node:net'
import { lingerBytes, lingerMs, maxLingering, openStalledMs } from '../../limits.ts'

/** Such connections that are read in the next turn. State of the module: they share the turns of one event loop. */
let lingering = 0

/**
 * Ends a connection so that the answer arrives: closing it while the client is still sending would reset it and lose
 * the answer (RFC 9112, section 9.6). A bounded part of what is sent is read, a little per turn, and dropped unparsed.
 * `tookMs`: time that a large answer without a token took to be sent; the rest of it may take as long, and is then dropped
 * from the kernel's memory.
 */
export function endGently(socket: Socket, tookMs?: number): void {
  let left = lingerBytes
  socket.end()
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
  // Begins to read again where Node's server has stopped: nothing is pushed, but the next read is asked for.
  socket.push('')
  socket.resume()
  const isLarge = tookMs !== undefined
  const cut = () => (isLarge ? socket.resetAndDestroy() : socket.destroy())
  const timer = setTimeout(cut, isLarge ? Math.max(openStalledMs, tookMs) : lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}
