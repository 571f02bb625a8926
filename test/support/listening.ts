// The moment at which a service that a test has started is ready.
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'

/** Resolves to the URL that a service says it is listening on; rejects when it ends before. */
export function listeningOn(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', '']
    child.stderr?.on('data', (chunk) => (stderr += chunk))
    const stream = child.stdout as Readable
    stream.on('data', (chunk) => {
      stdout += chunk
      const [, url] = /listening on (\S+)\n/.exec(stdout) ?? []
      if (url !== undefined) resolve(url)
    })
    child.once('close', () => reject(new Error(`it did not start: ${stdout}${stderr}`)))
  })
}
