// Where the log was seen to end. It only ever grows; a server on which it is shorter is not the primary any more (one
// that was frozen and has come back), or has lost plants. Pages and ETags made from what was seen would be wrong for it.

export class SeenHead {
  #position = 0

  /** The log was seen to reach this position. */
  note(position: number): void {
    if (position > this.#position) this.#position = position
  }

  /** Resolves to the position that `query` reads. Rejects when the log was seen to be longer before it was asked. */
  async check(query: () => Promise<number>): Promise<number> {
    const seen = this.#position
    const position = await query()
    if (position < seen)
      throw new Error(
        `the log ends at ${position} on a server, but was seen to reach ${seen}: not its primary?`,
      )
    this.note(position)
    return position
  }
}
