// Checks generated validators with test strings and with responses of the service.
import { acceptedNames, refusedNames } from '../../test/contract/texts.ts'
import { expect, explain, printReport, service } from './report.ts'

type IsValid = (value: unknown) => boolean

/** Validators of the body of an addition, of a returned plant and of a list. */
export type Validators = { body: IsValid; plant: IsValid; list: IsValid }

const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' }

/** Libraries count UTF-16 units, so they refuse more than 127 characters beyond the first plane; the guide says so. */
const isTooLong = (name: string) => name.length > 255

/** Compares the validators with what the service accepts, refuses and returns, and prints the report. */
export async function checkValidators(kinds: Record<string, Validators>): Promise<void> {
  const answers: unknown[] = []
  for (const [, name] of acceptedNames) {
    const body = JSON.stringify({ name, tag: name })
    answers.push(await (await fetch(`${service.url}/plants`, { method: 'POST', headers, body })).json())
  }
  const list = (await (await fetch(`${service.url}/plants`, { headers })).json()) as { name: string }[]
  const short = list.filter(({ name }) => !isTooLong(name))
  for (const [kind, validators] of Object.entries(kinds)) {
    for (const [index, [what, name]] of acceptedNames.entries()) {
      if (isTooLong(name)) explain()
      else {
        expect(`${kind}: ${what}, sent`, validators.body({ name, tag: name }), true)
        expect(`${kind}: ${what}, returned`, validators.plant(answers[index]), true)
      }
    }
    for (const [what, name] of refusedNames)
      expect(`${kind}: ${what}`, validators.body({ name, tag: '' }), false)
    expect(`${kind}: a list`, validators.list(short), true)
  }
  printReport()
}
