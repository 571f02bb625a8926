// A flood of bytes on many connections, each opened again when it is closed: a process of its own.
import { connect } from 'node:net'

type Order = {
  begin?: string
  block: string
  connections: number
  port: number
  floodMs: number
  distinct?: number
}

process.once('message', ({ begin, block, connections, port, floodMs, distinct }: Order) => {
  const bytes = Buffer.from(block)
  const endMs = performance.now() + floodMs
  // 64 KiB, or ten requests of a long block at a time: no two alike.
  const size = (10 * bytes.length) / (distinct ?? 10)
  let offset = 0
  const next = () => {
    const part = bytes.subarray(offset, offset + size)
    offset = (offset + size) % bytes.length
    return part
  }
  const open = () => {
    if (performance.now() >= endMs) return
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: begin !== undefined })
    const send = () => {
      if (performance.now() < endMs && !socket.destroyed && socket.write(next())) setTimeout(send, 20)
    }
    socket.on('error', () => {}).on('drain', send)
    socket.once('connect', () => {
      if (begin !== undefined) socket.write(begin)
      send()
    })
    socket.once('end', () => begin === undefined && socket.destroy())
    socket.resume().once('close', () => setTimeout(open, 10))
  }
  for (let n = 0; n < connections; n++) open()
  setTimeout(() => process.exit(), floodMs)
})
