// The variables of OpenTelemetry that the service supports, and the options that follow from them. All are handed to
// the SDK, which reads few of them itself, and none from `.env`.
import { readFileSync } from 'node:fs'
import { type About, type Read, setting } from './setting.ts'
import { ConfigError, choose, makeReader, optional, readCount, splitList, toNumber } from './values.ts'

type Row<T> = [title: string, description: string, preset: string, read: Read<T>, mask?: About['mask']]

function row<T>(...[title, description, preset, read, mask = String]: Row<T>) {
  return setting(`OTEL_${title}`, read, { description, default: preset, mask })
}

/** Makes a setting of the exporter and its variant for traces, which wins. */
function pair<K extends string, T>(key: K, ...[title, description, preset, given, mask]: Row<T>) {
  const read = optional(given)
  const all = row(`EXPORTER_OTLP_${title}`, description, preset, read, mask)
  const own = row(`EXPORTER_OTLP_TRACES_${title}`, `${all.name} for traces.`, `(as ${all.name})`, read, mask)
  return { [key]: all, [`${key}OfTraces`]: own } as Record<K | `${K}OfTraces`, typeof all>
}

const maskEndpoint = (text: string) => text.replace(/\/\/[^/?#]*@/, '//***@').replace(/\?.*/s, '?***')
const maskValues = (text: string) => text.replaceAll(/=[^,]*/g, '=***')
const readFlag: Read<boolean> = (text, name) => choose('true', 'false')(text.toLowerCase(), name) === 'true'
const readRatio = makeReader('a number from 0 to 1', (text) =>
  toNumber(text, /^(0|1|[01]?\.\d+)(e-\d+)?$/i, 1),
)
const readBatch = optional(readCount)
const samplers = ['always_on', 'always_off', 'traceidratio'] as const
const readSampler = choose(...samplers, ...samplers.map((sampler) => `parentbased_${sampler}` as const))

export const traceSettings = {
  ...pair('otlpEndpoint', 'ENDPOINT url', 'Collector of traces (OTLP/HTTP).', '(off)', readUrl, maskEndpoint),
  ...pair('otlpHeaders', 'HEADERS pairs', 'Headers for it, like a=1,b=2.', '(none)', readHeaders, maskValues),
  ...pair('otlpTimeout', 'TIMEOUT ms', 'Time for sending a batch, retries included.', '10000', readCount),
  ...pair('otlpCompression', 'COMPRESSION coding', 'Compression of batches.', 'none', choose('none', 'gzip')),
  ...pair('otlpCa', 'CERTIFICATE file', 'Certificate authorities (PEM).', "(Node's)", readPem),
  ...pair('otlpProtocol', 'PROTOCOL name', 'Its protocol.', 'http/protobuf', choose('http/protobuf')),
  otelDisabled: row('SDK_DISABLED flag', 'true turns traces off.', 'false', readFlag),
  tracesExporter: row('TRACES_EXPORTER name', 'none turns traces off.', 'otlp', choose('otlp', 'none')),
  serviceName: row('SERVICE_NAME name', 'Name of the service in traces.', '(plant-store)', String),
  resource: row('RESOURCE_ATTRIBUTES pairs', 'Attributes of the service, like a=1,b=2.', '(none)', readPairs),
  traceSampler: row('TRACES_SAMPLER name', 'Sampler.', 'parentbased_always_on', readSampler),
  traceRatio: row('TRACES_SAMPLER_ARG ratio', 'Ratio for traceidratio, 0 to 1.', '1', readRatio),
  spanDelayMs: row('BSP_SCHEDULE_DELAY ms', 'Longest delay of a batch.', '5000', readCount),
  spanExportMs: row('BSP_EXPORT_TIMEOUT ms', 'Time for exporting a batch.', '30000', readCount),
  maxSpans: row('BSP_MAX_QUEUE_SIZE count', 'The most unsent spans.', '2048', readCount),
  spanBatch: row('BSP_MAX_EXPORT_BATCH_SIZE count', 'The most spans in a batch.', '(512 at most)', readBatch),
}

export type TraceConfig = { [K in keyof typeof traceSettings]: ReturnType<(typeof traceSettings)[K]['read']> }
export type TraceOptions = NonNullable<ReturnType<typeof traceOptionsOf>>

/** Derives the options of traces from the settings; undefined when traces are off. Throws ConfigError. */
export function traceOptionsOf(config: TraceConfig) {
  const { otlpEndpoint, serviceName, maxSpans, spanBatch = Math.min(512, maxSpans) } = config
  if (spanBatch > maxSpans)
    throw new ConfigError('OTEL_BSP_MAX_EXPORT_BATCH_SIZE must not be more than OTEL_BSP_MAX_QUEUE_SIZE')
  const url = config.otlpEndpointOfTraces ?? otlpEndpoint?.replace(/\/?(?=[?#]|$)/, '/v1/traces')
  if (url === undefined || config.otelDisabled || config.tracesExporter === 'none') return undefined
  const name = serviceName && { 'service.name': serviceName }
  return {
    ...config,
    ...{ url, spanBatch },
    resource: { 'service.name': 'plant-store', ...config.resource, ...name },
    headers: config.otlpHeadersOfTraces ?? config.otlpHeaders ?? {},
    timeoutMs: Math.min(Number(config.otlpTimeoutOfTraces ?? config.otlpTimeout), config.spanExportMs),
    compression: config.otlpCompressionOfTraces ?? config.otlpCompression,
    ca: config.otlpCaOfTraces ?? config.otlpCa,
  }
}

/** Reads a URL. No message repeats it: it may hold a password. */
function readUrl(text: string, name: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text
  throw new ConfigError(`${name} must be a URL with http or https`)
}

/** Reads `key=value,…` (W3C Baggage). Values may be secrets, so no message repeats them. */
function readPairs(text: string, name: string, form = /^/): Record<string, string> {
  const pairs = splitList(text).map((pair) => {
    try {
      const [, ...parts] = /^([^=]+)=(.*)$/s.exec(pair) ?? []
      const [key, value] = parts.map((part) => decodeURIComponent(part.trim()))
      if (key !== undefined && form.test(`${key}: ${value}`)) return [key, value]
    } catch {
      // Reported below.
    }
    throw new ConfigError(`${name} must be pairs like a=1,b=2, percent-encoded`)
  })
  return Object.fromEntries(pairs)
}

/** Reads headers (RFC 9110, section 5). */
function readHeaders(text: string, name: string): Record<string, string> {
  return readPairs(text, name, /^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*$/)
}

function readPem(file: string, name: string): string {
  try {
    const pem = readFileSync(file, 'utf8')
    // Loaded only with a certificate, which few set: every command would pay for the module.
    ;new (process.getBuiltinModule('node:crypto').X509Certificate)(pem)
    return pem
  } catch (error) {
    throw new ConfigError(`${name} must be a PEM file: ${(error as Error).message}`)
  }
}
