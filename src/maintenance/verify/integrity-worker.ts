// A thread for the database's integrity check, which can take minutes, while the main thread handles signals.
import { parentPort, workerData } from 'node:worker_threads'
import { openView } from '../../store/open.ts'
import { StoreUnavailable } from '../../store/store.ts'

/** `texts`: rows of the check; `failed`: reason why the file could not be read. */
export type Integrity = { texts: string[] } | { failed: string }

parentPort?.postMessage(await check(workerData))

async function check({ url, integrity }: { url: string; integrity: string }): Promise<Integrity> {
  const view = await openView(url)
  try {
    return { texts: (await view.select<[string]>(integrity)).flat() }
    /* c8 ignore next 4: the file becomes unreadable after its plants were read */
  } catch (error) {
    if (error instanceof StoreUnavailable) return { failed: error.message }
    throw error
  } finally {
    await view.close()
  }
}
