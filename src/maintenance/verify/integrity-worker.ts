// A thread with the database's own check of its file, which can take minutes: the main thread hears signals meanwhile.
import { parentPort, workerData } from 'node:worker_threads'
import { openView } from '../../store/open.ts'
import { StoreUnavailable } from '../../store/store.ts'

/** `texts`: the rows of the check; `failed`: why the file could not be read. */
export type Integrity = { texts: string[] } | { failed: string }

parentPort?.postMessage(await check(workerData))

async function check({ url, integrity }: { url: string; integrity: string }): Promise<Integrity> {
  const view = await openView(url)
  try {
    return { texts: (await view.select<[string]>(integrity)).flat() }
    /* c8 ignore next 4: the file becomes unreadable behind the look at its plants */
  } catch (error) {
    if (error instanceof StoreUnavailable) return { failed: error.message }
    throw error
  } finally {
    await view.close()
  }
}
