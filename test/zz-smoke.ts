import pino from 'pino'
import { hash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { buildApp } from '../src/app.ts'
import { openStore } from '../src/store/engines.ts'
import { noMeter } from '../src/metrics.ts'
rmSync('/tmp/smoke', { recursive: true, force: true })
const logger = pino({ level: 'info' }, pino.destination(2))
const store = await openStore('file:' + (process.env.DB ?? '/tmp/smoke/p.db'), { logger, mode: 'serve', create: true })
const grant = { id: 'x', scopes: new Set(['plants:read', 'plants:write']), untilMs: Infinity }
const good = new Map([[hash('sha256', 'tok', 'base64'), grant]])
const verify = (t: string) => good.get(hash('sha256', t, 'base64'))
const app = await buildApp({ store, settings: { rateLimit: undefined, basePath: '/', corsOrigin: false, trustProxy: false, keepAliveMs: 72000 } as any, verify, logger, write: (l) => process.env.QUIET || process.stdout.write(l), mask: String, meter: noMeter })
await app.listen({ port: Number(process.env.PORT ?? 0) })
const url = 'http://127.0.0.1:' + (app.server.address() as any).port
if (process.env.SERVE) { console.log(url); process.on('SIGINT', () => process.exit(0)) } else {
const go = async (path: string, init: any = {}) => { const r = await fetch(url + path, { ...init, headers: { authorization: 'Bearer tok', ...(init.body && {'content-type': 'application/json'}), ...init.headers } }); console.log(init.method ?? 'GET', path, r.status, JSON.stringify(Object.fromEntries(r.headers)), (await r.text()).slice(0, 400)); return r }
await go('/plants')
await go('/plants', { method: 'POST', body: '{"name":"a","tag":"b","id":1}' })
await go('/plants', { method: 'POST', body: '{"name":"a","tag":"b","id":1}' })
await go('/plants', { method: 'POST', body: '{"name":"a","tag":"c","id":1}' })
await go('/plants?x=1', { method: 'POST', body: '{"name":"","tag":5,"idx":1, "tag2": 3}' })
await go('/plants', { method: 'POST', body: '{"name":"x\\ud800","tag":5}' })
await go('/plants', { method: 'POST', body: '' , headers: {'content-type':'application/json'}})
await go('/plants', { method: 'POST' })
for (let i = 0; i < 5; i++) await go('/plants', { method: 'POST', body: JSON.stringify({ name: 'n' + i, tag: 't' }) })
const r = await go('/plants?limit=2')
await go(/<([^>]+)>/.exec(r.headers.get('link')!)![1]!)
await go('/plants?limit=2', { headers: { 'if-none-match': r.headers.get('etag') } })
await go('/plants?limit=2', { method: 'HEAD' })
for (const q of ['limit=-1','limit=1e3','limit=','limit=1&limit=2','limt=5','after=0-AAAAAAAAAAA','after=zz','limit=0', 'limit=9007199254740992'] ) await go('/plants?' + q)
await go('/plants', { method: 'DELETE' }); await go('/x'); await go('/%zz')
await go('/plants', { headers: { authorization: 'Bearer no' } })
await app.close(); await store.close() }
