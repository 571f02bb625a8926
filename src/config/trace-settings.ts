// The variables of OpenTelemetry that the service supports, and the options that follow from them. All are handed to
// the SDK, which reads few of them itself, and none from `.env`.
import { readFileSync } from 'node:fs'
import { version } from '../runtime/version.ts'
import { type About, type Read, setting } from './setting.ts'
import { ConfigError, choose, makeReader, optional, readCount, splitList, toNumber } from './values.ts'

/** Makes a variable. They have no flags. */
function variable<T>(name: string, preset: string, read: Read<T>, mask: About['mask'] = String) {
  return setting(`OTEL_${name}`, read, { default: preset, mask })
}

/** Makes a variable of the exporter and its variant for traces, which wins. */
function pair<K extends string, T>(
  key: K,
  name: string,
  preset: string,
  given: Read<T>,
  mask?: About['mask'],
) {
  const read = optional(given)
  const all = variable(`EXPORTER_OTLP_${name}`, preset, read, mask)
  const own = variable(`EXPORTER_OTLP_TRACES_${name}`, `(as ${all.name})`, read, mask)
  return { [key]: all, [`${key}OfTraces`]: own } as Record<K | `${K}OfTraces`, typeof all>
}

const maskEndpoint = (text: string) => text.replace(/\/\/[^/?#]*@/, '//***@').replace(/\?.*/s, '?***')
const maskValues = (text: string) => text.replaceAll(/=[^,]*/g, '=***')
const readFlag: Read<boolean> = (text, name) => choose('true', 'false')(text.toLowerCase(), name) === 'true'
const readRatio = makeReader('a number from 0 to 1', (text) =>
  toNumber(text, /^(0|1|[01]?\.\d+)(e-\d+)?$/i, 1),
)
const samplers = ['always_on', 'always_off', 'traceidratio'] as const
const readSampler = choose(...samplers, ...samplers.map((sampler) => `parentbased_${sampler}` as const))

export const traceSettings = {
  ...pair('otlpEndpoint', 'ENDPOINT', '(off)', readUrl, maskEndpoint),
  ...pair('otlpHeaders', 'HEADERS', '(none)', readHeaders, maskValues),
  ...pair('otlpTimeout', 'TIMEOUT', '10000', readCount),
  ...pair('otlpCompression', 'COMPRESSION', 'none', choose('none', 'gzip')),
  ...pair('otlpCa', 'CERTIFICATE', "(Node's)", readPem),
  ...pair('otlpProtocol', 'PROTOCOL', 'http/protobuf', choose('http/protobuf')),
  otelDisabled: variable('SDK_DISABLED', 'false', readFlag),
  tracesExporter: variable('TRACES_EXPORTER', 'otlp', choose('otlp', 'none')),
  serviceName: variable('SERVICE_NAME', '(plant-store)', String),
  resource: variable('RESOURCE_ATTRIBUTES', '(none)', readPairs),
  traceSampler: variable('TRACES_SAMPLER', 'parentbased_always_on', readSampler),
  traceRatio: variable('TRACES_SAMPLER_ARG', '1', readRatio),
  spanDelayMs: variable('BSP_SCHEDULE_DELAY', '5000', readCount),
  spanExportMs: variable('BSP_EXPORT_TIMEOUT', '30000', readCount),
  maxSpans: variable('BSP_MAX_QUEUE_SIZE', '2048', readCount),
  spanBatch: variable('BSP_MAX_EXPORT_BATCH_SIZE', '(512 at most)', optional(readCount)),
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
    resource: { 'service.name': 'plant-store', 'service.version': version, ...config.resource, ...name },
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
