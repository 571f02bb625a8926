// The store that is copied. It is only read, as whatever version made it: a service of that version may run on it.

import { epochsVersion } from '../../store/format/migrations.ts'
import { openView } from '../../store/open.ts'
import { type Row, StoreRefused } from '../../store/store.ts'
import { findHead, type StoreView, selectRows } from '../../store/view.ts'
import { tokenColumns } from '../../tokens/tokens.ts'

export class Source {
  /** The name of the store. */
  readonly id: string
  readonly #view: StoreView

  constructor(view: StoreView, id: string) {
    this.#view = view
    this.id = id
  }

  /** The last position of the log. */
  head(): Promise<number> {
    return findHead(this.#view)
  }

  /** At most `count` plants, those after a position first. */
  plants(after: number, count: number): Promise<Row[]> {
    const rest = `FROM plants WHERE position > $1 ORDER BY position LIMIT ${count}`
    return selectRows(this.#view, ['position', 'id', 'item'], rest, [after])
  }

  tokens(): Promise<Row[]> {
    return selectRows(this.#view, tokenColumns, 'FROM tokens ORDER BY id')
  }

  /** The epochs of the first so many plants; none when its version had none. */
  async epochs(plants: number): Promise<Row[]> {
    if (this.#view.version < epochsVersion) return []
    return selectRows(
      this.#view,
      ['number', 'epoch', 'start'],
      'FROM epochs WHERE start <= $1 ORDER BY number',
      [plants],
    )
  }

  /** The values of `meta` under a key. */
  async notes(key: string): Promise<Row[]> {
    return selectRows(this.#view, ['value'], 'FROM meta WHERE key = $1', [key])
  }

  close(): Promise<void> {
    return this.#view.close()
  }
}

/** Throws StoreRefused when there is no store, and when it is a standby: that may lack what its primary has. */
export async function openSource(url: string): Promise<Source> {
  const view = await openView(url)
  try {
    const [[isStandby] = []] = await view.select(`SELECT ${view.dialect.isStandby}`)
    if (isStandby) throw new StoreRefused('--from is a standby: name its primary')
    const [[id] = []] = await view.select<[string]>("SELECT value FROM meta WHERE key = 'store'")
    return new Source(view, String(id))
  } catch (error) {
    await view.close()
    throw error
  }
}
