// npm run fix: removes `engines` of packages from package-lock.json. npm would compare them with the Node that npm
// itself runs on, and warn, although the packages run on the Node of the lockfile. `--check` changes nothing.
import { readFileSync, writeFileSync } from 'node:fs'

const file = new URL('../package-lock.json', import.meta.url)
const text = readFileSync(file, 'utf8')
const lockfile = JSON.parse(text)
for (const path of Object.keys(lockfile.packages))
  if (path.includes('node_modules/')) delete lockfile.packages[path].engines
const wanted = `${JSON.stringify(lockfile, null, 2)}\n`
if (wanted !== text) {
  if (process.argv.includes('--check')) {
    console.error('package-lock.json has engines, about which npm would warn; run: npm run fix')
    process.exitCode = 1
  } else writeFileSync(file, wanted)
}
