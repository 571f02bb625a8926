// What the docs page loads.
import { compose, send } from './wire.ts'

/** The paths of all assets that the page at /docs names. */
export async function findAssets(port: number): Promise<string[]> {
  const { text } = await send(port, compose({ target: '/docs', headers: { Authorization: undefined } }))
  return [...new Set(text.match(/(?<=(?:src|href)=")[^"]*\/static\/[^"]+/g))]
}
