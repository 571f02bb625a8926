// npx node docs/picture.ts: draws how-it-works.svg, which README.md shows.
import { writeFileSync } from 'node:fs'

const [width, height] = [860, 330]
const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
  .title { font-weight: 600 } .small { font-size: 11px; fill: #59636e }
  rect { fill: #f6f8fa; stroke: #8c959f } .ours { fill: #dafbe1; stroke: #1a7f37 }
  path { fill: none; stroke: #59636e; stroke-width: 1.5 } .head { fill: #59636e; stroke: none }
  .either { stroke-dasharray: 5 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 }
    rect { fill: #151b23; stroke: #656c76 } .ours { fill: #12261e; stroke: #3fb950 }
    path { stroke: #9198a1 } .head { fill: #9198a1 }
  }`

type Box = { x: number; y: number; w: number; h: number; kind?: string }

/** A box with a title, and smaller lines below it. */
function drawBox({ x, y, w, h, kind = '' }: Box, title: string, ...lines: string[]): string {
  const top = y + h / 2 + 5 - lines.length * 8
  const texts = lines.map(
    (line, index) => `<text class="small" x="${x + w / 2}" y="${top + 17 * (index + 1)}">${line}</text>`,
  )
  return [
    `<rect class="${kind}" x="${x}" y="${y}" width="${w}" height="${h}" rx="6"/>`,
    `<text class="title" x="${x + w / 2}" y="${top}">${title}</text>`,
    ...texts,
  ].join('\n')
}

/** A line between two points, horizontal at both ends, with a head at the second, and words above it. */
function drawArrow([x, y]: [number, number], [toX, toY]: [number, number], words = '', kind = ''): string {
  const middle = (x + toX) / 2
  return [
    `<path class="${kind}" d="M${x} ${y} C${middle} ${y} ${middle} ${toY} ${toX - 7} ${toY}"/>`,
    `<path class="head" d="M${toX} ${toY} l-8 -4 v8 z"/>`,
    `<text class="small" x="${middle}" y="${Math.min(y, toY) - 8}">${words}</text>`,
  ].join('\n')
}

export function drawPicture(): string {
  const clients = [50, 130, 210].map((y) => drawBox({ x: 10, y, w: 100, h: 46 }, 'client'))
  const threads = [60, 170].map((y) =>
    drawBox(
      { x: 200, y, w: 160, h: 80, kind: 'ours' },
      'thread',
      'token, limits, schema',
      'pages kept by name',
    ),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="How Plant Store works">`,
    `<style>${style}\n</style>`,
    '<text class="small" x="280" y="40">one process, THREADS of them</text>',
    ...clients,
    ...threads,
    drawArrow([110, 73], [200, 90], 'HTTP'),
    drawArrow([110, 153], [200, 110]),
    drawArrow([110, 233], [200, 210]),
    drawBox(
      { x: 450, y: 115, w: 150, h: 80, kind: 'ours' },
      'group commit',
      'all that wait: one',
      'batch, one fsync',
    ),
    drawArrow([360, 100], [450, 145], 'POST'),
    drawArrow([360, 210], [450, 165]),
    drawBox({ x: 690, y: 50, w: 160, h: 80 }, 'SQLite', 'write-ahead log,', 'one writer thread'),
    drawArrow([600, 145], [690, 90], 'file:', 'either'),
    drawBox({ x: 690, y: 180, w: 160, h: 56 }, 'PostgreSQL primary', 'one head row'),
    drawArrow([600, 165], [690, 208], 'postgres:', 'either'),
    drawBox({ x: 690, y: 270, w: 75, h: 46 }, 'standby'),
    drawBox({ x: 775, y: 270, w: 75, h: 46 }, 'standby'),
    '<path d="M727 236 V262 M812 236 V262"/>',
    '<path class="head" d="M727 270 l-4 -8 h8 z"/><path class="head" d="M812 270 l-4 -8 h8 z"/>',
    '<text class="small" x="525" y="215">200 once it is on disk,</text>',
    '<text class="small" x="525" y="232">and on the standbys</text>',
    '</svg>\n',
  ].join('\n')
}

/* c8 ignore next: the tests compare, they do not write */
if (import.meta.main) writeFileSync(new URL('how-it-works.svg', import.meta.url), drawPicture())
