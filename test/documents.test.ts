// What is open to everyone: how documents, pages and assets are compressed, cached and asked for again.
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import fastify from 'fastify'
import { type Test, test } from 'tap'
import { chooseCoding } from '../src/http/coded.ts'
import { serveDocument } from '../src/http/documents.ts'
import { sqlite } from './support/engines.ts'
import { startApp } from './support/service.ts'
import { compose, send } from './support/wire.ts'

const choices: [accepted: string | undefined, coding: string][] = [
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP;Q=0.5', 'gzip'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip, zstd', 'zstd'],
  ['br;q=0.1, gzip;q=0.2', 'gzip'],
  ['br;q=0.5, zstd;q=0.5, gzip;q=0.5', 'br'],
  ['deflate, compress', 'identity'],
  ['*', 'br'],
  ['*;q=0.5, br;q=0', 'zstd'],
  ['gzip;q=0.5, *;q=0.1', 'gzip'],
  ['gzip;q=0', 'identity'],
  ['gzip;q=0.000', 'identity'],
  ['identity, gzip;q=0.5', 'identity'],
  ['identity;q=0.5, gzip;q=0.5', 'gzip'],
  ['gzip;q=0.001', 'gzip'],
  ['identity;q=0', 'br'],
  ['identity;q=0, br;q=0', 'zstd'],
  ['identity;q=0, gzip', 'gzip'],
  ['gzip, *;q=0', 'gzip'],
  ['*;q=0', 'identity'],
  ['identity;q=0, *;q=0', 'identity'],
  [' ,, gzip ;\tq=1.000 ,', 'gzip'],
  // What is malformed counts for nothing.
  ['gzip;q=1.1', 'identity'],
  ['gzip;q=0.1234', 'identity'],
  ['gzip;q=-1', 'identity'],
  ['gzip;q', 'identity'],
  ['gz ip', 'identity'],
  ['"gzip"', 'identity'],
]

test('the coding is the one that the client prefers', async (t) => {
  for (const [accepted, coding] of choices) t.equal(chooseCoding(accepted), coding, `${accepted}`)
})

test('a long Accept-Encoding is read in one pass', async (t) => {
  for (const part of ['gzip;q=', ' ', '\t;', 'a', ',', 'gzip; ', '*;q=0.']) {
    const accepted = part.repeat(1_000_000 / part.length)
    t.equal(chooseCoding(`${accepted},br`), 'br', part)
  }
})

const decode: Record<string, (bytes: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
  gzip: gunzipSync,
}
