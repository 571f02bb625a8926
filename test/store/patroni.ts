// Three servers under Patroni with etcd, each on its own loopback address, configured by the file of deploy/patroni.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { Test } from 'tap'
import { findPorts } from '../support/postgres.ts'
import { createServerDirectory, own, user } from '../support/postgres-programs.ts'
import { noteProcess, root, signalAll } from '../support/processes.ts'
import { until } from '../support/until.ts'

const deploy = join(root, 'deploy/patroni')
const debian = '/usr/lib/postgresql'
const password = 'secret'

/** The programs of the newest PostgreSQL of Debian, since its Patroni supports no newer one; undefined if missing. */
export function findServerPrograms(): string | undefined {
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
  return versions
    .map((version) => join(debian, version, 'bin'))
    .find((path) => existsSync(join(path, 'initdb')))
}

/** Starts a program as a user that PostgreSQL accepts. */
function start(directory: string, program: string, args: string[]): ChildProcess {
  const log = openSync(join(directory, 'log'), 'a')
  const env = { PATH: `${process.env.PATH}:/usr/bin`, HOME: directory, LC_ALL: 'C.UTF-8' }
  const child = spawn(program, args, { cwd: directory, env, stdio: ['ignore', log, log], ...user })
  noteProcess(child)
  return child
}

/** A member in the view of Patroni: its role is leader, sync_standby or replica. */
type Member = { name: string; role: string; state: string; timeline?: number }

export class Node {
  readonly name: string
  readonly host: string
  readonly directory = createServerDirectory()
  readonly #ports: { sql: number; rest: number }
  #patroni: ChildProcess | undefined

  constructor(number: number, ports: { sql: number; rest: number; etcd: number }, programs: string) {
    this.name = `pg${number}`
    this.host = `127.0.0.${10 + number}`
    this.#ports = ports
    const changes: [string, string][] = [
      ['name: pg1', `name: ${this.name}`],
      ['10.0.0.11:8008', `${this.host}:${ports.rest}`],
      ['10.0.0.11:5432', `${this.host}:${ports.sql}`],
      // In the packaged version, etcd3 lets a frozen leader take its lock back.
      ['etcd3:', 'etcd:'],
      ['10.0.0.21:2379,10.0.0.22:2379,10.0.0.23:2379', `127.0.0.21:${ports.etcd}`],
      ['/usr/lib/postgresql/15/bin', programs],
      ['/var/lib/postgresql/15/plants', join(this.directory, 'data')],
      ['/var/lib/postgresql/plants.pgpass', join(this.directory, 'pgpass')],
      ['10.0.0.0/24', '127.0.0.0/8'],
      ['mode: required', "mode: 'off'"],
    ]
    let text = readFileSync(join(deploy, 'patroni.yml'), 'utf8')
    for (const [from, to] of changes) {
      if (!text.includes(from)) throw new Error(`patroni.yml has no "${from}"`)
      text = text.replaceAll(from, to)
    }
    // Avoids the default directory of sockets, which other servers may use.
    const sockets = `  parameters: { unix_socket_directories: '${this.directory}' }\n  authentication:`
    writeFileSync(join(this.directory, 'patroni.yml'), text.replace('  authentication:', sockets))
    own(join(this.directory, 'patroni.yml'))
  }

  get address(): string {
    return `${this.host}:${this.#ports.sql}`
  }

  start(): void {
    this.#patroni = start(this.directory, '/usr/bin/patroni', ['patroni.yml'])
  }

  /** Sends a request to its Patroni; undefined without a response. */
  async ask(path: string, body?: object): Promise<Response | undefined> {
    const sent = body && { method: 'POST', body: JSON.stringify(body) }
    const options = { ...sent, signal: AbortSignal.timeout(30_000) }
    return fetch(`http://${this.host}:${this.#ports.rest}${path}`, options).catch(() => undefined)
  }

  /** Sends a signal only to Patroni. */
  signalPatroni(name: NodeJS.Signals): void {
    this.#patroni?.kill(name)
  }

  /** Kills only the postmaster. */
  killServer(): void {
    process.kill(this.#postmaster as number, 'SIGKILL')
  }

  /** Kills all processes of the node, as a failure of the machine would. */
  kill(): void {
    const server = this.#postmaster
    this.signalPatroni('SIGKILL')
    if (server !== undefined) signalAll(server, 'SIGKILL')
  }

  get #postmaster(): number | undefined {
    const path = join(this.directory, 'data', 'postmaster.pid')
    return existsSync(path) ? Number.parseInt(readFileSync(path, 'utf8'), 10) : undefined
  }
}

export class PatroniCluster {
  readonly nodes: Node[]

  constructor(nodes: Node[]) {
    this.nodes = nodes
  }

  get url(): string {
    return `postgres://plants:${password}@${this.nodes.map(({ address }) => address)}/plants`
  }

  /** The members in the view of the first Patroni that responds. */
  async members(by = this.nodes): Promise<Member[]> {
    for (const node of by) {
      const answer = await node.ask('/cluster')
      if (answer?.ok) return ((await answer.json()) as { members: Member[] }).members
    }
    return []
  }

  /** Resolves to the nodes by their roles, once all three are running and one standby is synchronous. */
  async whole(): Promise<{ leader: Node; standby: Node; others: Node[] }> {
    let found: Member[] = []
    await until(async () => {
      found = await this.members()
      const isUp = ({ state }: Member) => state === 'running' || state === 'streaming'
      const roles = found.filter(isUp).map(({ role }) => role)
      return roles.length === 3 && roles.includes('leader') && roles.includes('sync_standby')
    })
    const nodeOf = (role: string) =>
      this.nodes.find(({ name }) => found.some((one) => one.name === name && one.role === role)) as Node
    const leader = nodeOf('leader')
    return { leader, standby: nodeOf('sync_standby'), others: this.nodes.filter((node) => node !== leader) }
  }
}

/** Starts etcd and three nodes, with the role and the database of deploy/patroni; all end with the test. */
export async function startPatroni(t: Test, programs: string): Promise<PatroniCluster> {
  const [etcd, peer, sql, rest] = (await findPorts(4)) as [number, number, number, number]
  const directory = createServerDirectory()
  mkdirSync(join(directory, 'data'), { mode: 0o700 })
  own(join(directory, 'data'))
  const url = (port: number) => `http://127.0.0.21:${port}`
  const places = { 'listen-client-urls': etcd, 'advertise-client-urls': etcd, 'listen-peer-urls': peer }
  const flags = Object.entries(places).map(([name, port]) => `--${name}=${url(port)}`)
  const peers = [`--initial-advertise-peer-urls=${url(peer)}`, `--initial-cluster=default=${url(peer)}`]
  const args = ['--enable-v2', `--data-dir=${join(directory, 'data')}`, ...flags, ...peers]
  const child = start(directory, '/usr/bin/etcd', args)
  const nodes = [1, 2, 3].map((number) => new Node(number, { sql, rest, etcd }, programs))
  t.teardown(async () => {
    for (const node of nodes) node.kill()
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  const isUp = () => fetch(`${url(etcd)}/health`).then(({ ok }) => ok)
  await until(() => isUp().catch(() => false))
  const cluster = new PatroniCluster(nodes)
  for (const node of nodes) node.start()
  const { leader } = await cluster.whole()
  const client = new pg.Client(`postgres://postgres:SUPERUSER_PASSWORD@${leader.address}/postgres`)
  await client.connect()
  const text = readFileSync(join(deploy, 'plants.sql'), 'utf8').replace(/^--.*$/gm, '')
  const statements = text.replace(":'password'", `'${password}'`).split(';')
  for (const statement of statements) await client.query(statement)
  await client.end()
  return cluster
}
