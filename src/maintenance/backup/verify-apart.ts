// Verifies a copy in a thread, which runs this file, too: queries may take seconds, and the main thread has signals to
// handle.
import { on } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { type VerifyOptions, type VerifyReport, verifyStore } from '../verify/verify-store.ts'

type Message = [done: number, total: number] | VerifyReport

/** Verifies the store at a URL. Rejects with the reason of `signal` when that aborts. */
export async function verifyApart(url: string, options: VerifyOptions & { signal?: AbortSignal }) {
  const { signal, onProgress } = options
  const worker = new Worker(new URL(import.meta.url), { workerData: { copy: url } })
  try {
    for await (const [message] of on(worker, 'message', { signal }) as AsyncIterable<[Message]>) {
      if (!Array.isArray(message)) return message
      onProgress?.(...message)
    }
    /* c8 ignore next: the messages end with the report, or an error */
    throw new Error('the thread ended')
  } finally {
    await worker.terminate()
    // `on` rejects with an AbortError instead of the reason.
    signal?.throwIfAborted()
  }
}

// In the thread.
if (workerData?.copy) {
  const post = (message: Message) => parentPort?.postMessage(message)
  post(await verifyStore(workerData.copy, { onProgress: (...progress) => post(progress) }))
}
