// Somebody without a token who opens connections, sends a few bytes on each, and reads nothing: a process of its own.
import { connect } from 'node:net'

export type Order = {
  port: number
  localAddress: string
  /** What each connection sends; nothing: it stays silent. */
  bytes: string
  /** Connections opened at once, and in each second from then on. */
  connections: number
  perSecond: number
  forMs: number
}

const stepMs = 10

process.once('message', ({ port, localAddress, bytes, connections, perSecond, forMs }: Order) => {
  function open(): void {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    socket.on('error', () => {}).pause()
    socket.once('connect', () => bytes !== '' && socket.write(bytes))
  }
  for (let n = 0; n < connections; n++) open()
  let opened = 0
  const startMs = performance.now()
  setInterval(() => {
    for (; opened < (perSecond * (performance.now() - startMs)) / 1000; opened++) open()
  }, stepMs)
  setTimeout(() => process.exit(), forMs)
})
