// The manifests in deploy/kubernetes beside the models that others make from the OpenAPI document of Kubernetes. Their
// validators let members pass that do not exist, and their types do not: so each manifest is compiled, then validated.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { compile } from './generators.ts'
import { folder, type Outcome, run, versionOf } from './tools.ts'

const manifests = `${folder}../deploy/kubernetes/`

export async function checkKubernetes(): Promise<Outcome> {
  const documents = readdirSync(manifests).flatMap((name) =>
    parseAllDocuments(readFileSync(manifests + name, 'utf8')).map((one) => one.toJS()),
  )
  const lines = documents.flatMap(({ apiVersion, kind, ...rest }, index) => [
    `import { ${kind} as Model${index} } from 'kubernetes-models/${apiVersion}'`,
    `new Model${index}(${JSON.stringify(rest, null, 2)}).validate()`,
  ])
  mkdirSync(`${folder}generated`, { recursive: true })
  writeFileSync(`${folder}generated/kubernetes.ts`, `${lines.join('\n')}\n`)
  const mistakes = await compile('kubernetes', 'kubernetes.ts')
  const { code, stderr } = await run([process.execPath, 'generated/kubernetes.ts'])
  return {
    tool: 'Kubernetes manifests',
    version: versionOf('kubernetes-models'),
    cases: documents.length,
    failures: code === 0 ? mistakes : [...mistakes, /^\w*Error: .*/m.exec(stderr)?.[0] ?? stderr],
    explained: 0,
  }
}
