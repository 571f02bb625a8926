// TLS proxies in front of an app, with the configurations that deploy/proxies has for them.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { noteProcess } from '../support/processes.ts'

export const host = 'plants.example.org'
const patienceMs = 30_000

/** A configuration with other words in some places, each of which must be there. */
export function adaptConfiguration(name: string, changes: Record<string, string>): string {
  let text = readFileSync(fileURLToPath(new URL(`../../deploy/proxies/${name}`, import.meta.url)), 'utf8')
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`${name} has no "${from}"`)
    text = text.replaceAll(from, to)
  }
  return text
}

export type Certificate = { key: string; crt: string; pem: string; text: string }

/** Makes a certificate for a day; `pem` has it together with its key. */
export function makeCertificate(directory: string): Certificate {
  const files = { key: join(directory, 'key'), crt: join(directory, 'crt'), pem: join(directory, 'pem') }
  const kind = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1'.split(' ')
  const name = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host},IP:127.0.0.1`]
  execFileSync('openssl', ['req', ...kind, ...name, '-keyout', files.key, '-out', files.crt], {
    stdio: 'pipe',
  })
  const text = readFileSync(files.crt, 'utf8')
  writeFileSync(files.pem, text + readFileSync(files.key, 'utf8'))
  return { ...files, text }
}

/** Folders that nginx would look for elsewhere, as directives. */
export function nginxFolders(directory: string): string {
  const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  for (const name of names) mkdirSync(join(directory, name))
  return names.map((name) => `${name}_temp_path ${join(directory, name)};`).join(' ')
}

/** Starts a proxy, which ends with the test; `said` resolves when it has written something. */
export function startProxy(t: Test, program: string, args: string[]) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const until = async (isTrue: () => boolean | Promise<boolean>) => {
    const endMs = performance.now() + patienceMs
    while (!(await isTrue())) {
      if (child.exitCode !== null || performance.now() > endMs) throw new Error(`${program}: ${output}`)
      await sleep(50)
    }
  }
  return { until, said: (pattern: RegExp) => until(() => pattern.test(output)) }
}

export type Asked = { status: number | undefined; headers: IncomingHttpHeaders; body: Buffer }
type AskOptions = { port: number; ca: string; headers?: Record<string, string>; body?: string }

/** Sends a request over TLS, from an address of its own on this machine. */
export async function ask(path: string, { port, ca, headers = {}, body }: AskOptions): Promise<Asked> {
  const { promise, resolve, reject } = Promise.withResolvers<Asked>()
  const sent = request(
    {
      host: '127.0.0.1',
      port,
      path,
      ca,
      servername: host,
      localAddress: '127.0.0.2',
      method: body === undefined ? 'GET' : 'POST',
      headers: { host, ...headers },
      agent: false,
    },
    (response) => {
      const { statusCode: status, headers } = response
      buffer(response).then((body) => resolve({ status, headers, body }), reject)
    },
  )
  sent.on('error', reject).end(body)
  return promise
}
