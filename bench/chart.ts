// The results as a picture: bars of requests per second, in SVG.
import type { Report } from './report.ts'

type Row = Report['rows'][number]

const barHeight = 22
const gap = 8
const labelWidth = 190
const barWidth = 420
const width = labelWidth + barWidth + 90
const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .bar { fill: #9aa4ae } .ours { fill: #2da44e }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #6e7681 } }`

/** One group of bars for each piece of work that is compared with the bare server. */
export function toSvg(rows: Row[]): string {
  const compared = rows.filter((row) => row.ratio !== undefined && row.perSecond > 100)
  const floors = compared.filter((row) => row.server === 'bare node:http')
  let y = 8
  const groups = [...new Set(floors.map((row) => row.work))].flatMap((work) => {
    const group = compared.filter((row) => row.work === work)
    const top = y
    y += 44 + group.length * (barHeight + gap)
    return drawGroup(work, group, top)
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" role="img" aria-label="Requests per second">`,
    `<style>${style}\n</style>`,
    ...groups,
    '</svg>\n',
  ].join('\n')
}

function drawGroup(work: string, rows: Row[], top: number): string[] {
  const most = Math.max(...rows.map((row) => row.perSecond))
  const bars = rows.flatMap((row, index) => {
    const y = top + 24 + index * (barHeight + gap)
    const length = Math.max(2, (row.perSecond / most) * barWidth)
    const kind = row.server.startsWith('Plant Store') ? 'bar ours' : 'bar'
    const middle = y + barHeight / 2 + 5
    return [
      `<text x="${labelWidth - 8}" y="${middle}" text-anchor="end">${escapeText(row.server)}</text>`,
      `<rect class="${kind}" x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight}" rx="3"/>`,
      `<text x="${(labelWidth + length + 8).toFixed(1)}" y="${middle}">${Math.round(row.perSecond).toLocaleString('en')}</text>`,
    ]
  })
  return [
    `<text class="title" x="8" y="${top + 14}">${escapeText(work)}: requests per second</text>`,
    ...bars,
  ]
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
