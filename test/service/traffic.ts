// Sends hostile traffic from 127.0.0.2 for a while. Runs in a forked process, which receives its task as a message.
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export const kinds = ['flood', 'slow heads', 'unread answers', 'pipelining'] as const
export type Kind = (typeof kinds)[number]
export type Traffic = { kind: Kind; port: number; ca?: string | undefined; host: string; forMs: number }

const connections = { flood: 200, 'slow heads': 1000, 'unread answers': 200, pipelining: 200 }
const retryMs = 50
const slowMs = 500
const many = 100

function send(traffic: Traffic, socket: Socket): void {
  const get = (path: string, rest = '') => `GET ${path} HTTP/1.1\r\nHost: ${traffic.host}\r\n${rest}\r\n`
  if (traffic.kind === 'flood') socket.resume().write(get('/plants', 'Connection: close\r\n'))
  else if (traffic.kind === 'unread answers')
    socket.pause().write(get('/docs/static/swagger-ui-bundle.js', 'Accept-Encoding: br\r\n').repeat(many))
  else if (traffic.kind === 'pipelining') {
    const block = get('/plants?limit=1').repeat(many)
    const fill = () => {
      while (!socket.destroyed && socket.write(block));
    }
    socket.resume().on('drain', fill)
    fill()
  } else {
    socket.resume().write(`GET /plants HTTP/1.1\r\nHost: ${traffic.host}\r\nX-Slow: `)
    const timer = setInterval(() => socket.write('x'), slowMs)
    socket.once('close', () => clearInterval(timer))
  }
}

/** Opens a connection, and another one when it ends. */
function open(traffic: Traffic): void {
  const { port, ca, host: servername, kind } = traffic
  const to = { host: '127.0.0.1', port, localAddress: '127.0.0.2' }
  const ready = () => send(traffic, socket)
  const socket: Socket =
    ca === undefined
      ? connectPlain(to, ready)
      : connectTls({ ...to, ca, servername, ALPNProtocols: ['http/1.1'] }, ready)
  socket.on('error', () => {})
  socket.once('close', () => setTimeout(open, kind === 'flood' ? 0 : retryMs, traffic))
}

process.once('message', (traffic: Traffic) => {
  for (let n = 0; n < connections[traffic.kind]; n++) open(traffic)
  setTimeout(() => process.exit(), traffic.forMs)
})
