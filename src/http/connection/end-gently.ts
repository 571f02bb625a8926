// Ends connections whose clients may still be sending.
import type { Socket } from 'node:net'
import { lingerBytes, lingerMs, maxLingering, openStalledMs } from '../../limits.ts'

/** Such connections that may have more to be read, in turn. State of the module: they share one event loop. */
const waiting = new Set<Socket>()

/**
 * Ends a connection so that the answer arrives: closing it while the client is still sending would reset it and lose
 * the answer (RFC 9112, section 9.6). A bounded part of what is sent is read, one such connection per turn, and dropped unparsed.
 * `tookMs`: time that a large answer without a token took to be sent; the rest of it may take as long, and is then dropped
 * from the kernel's memory.
 */
export function endGently(socket: Socket, tookMs?: number): void {
  let left = lingerBytes
  socket.end()
  socket.removeAllListeners('data')
  socket.on('data', ({ length }) => {
    left -= length
    if (left < 0 || waiting.size >= maxLingering) return void socket.destroy()
    socket.pause()
    if (waiting.size === 0) setImmediate(readOn)
    waiting.add(socket)
  })
  // Begins to read again where Node's server has stopped: nothing is pushed, but the next read is asked for.
  socket.push('')
  socket.resume()
  const isLarge = tookMs !== undefined
  const cut = () => (isLarge ? socket.resetAndDestroy() : socket.destroy())
  const timer = setTimeout(cut, isLarge ? Math.max(openStalledMs, tookMs) : lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Reads on from the one that has waited longest. A turn accepts one new connection, so that none may take long. */
function readOn(): void {
  const longest = waiting.values().next().value as Socket
  waiting.delete(longest)
  longest.resume()
  if (waiting.size > 0) setImmediate(readOn)
}
