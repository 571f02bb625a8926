// A copy of the working tree that defects are put into: the tree itself is never touched.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { applyDefect, type Defect } from './defect.ts'

export class Tree {
  readonly directory = mkdtempSync(join(tmpdir(), 'plant-store-mutant-'))

  /** Copies what is in the tree at `root` and not ignored by git; the packages are shared. */
  constructor(root: string) {
    const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
    })
    for (const path of list.split('\0').filter(Boolean))
      cpSync(join(root, path), join(this.directory, path), { recursive: true, verbatimSymlinks: true })
    symlinkSync(join(root, 'node_modules'), join(this.directory, 'node_modules'))
  }

  /** Does `work` while the defect is in. */
  async with<T>(defect: Defect, work: () => Promise<T>): Promise<T> {
    const path = join(this.directory, defect.file)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, applyDefect(defect, text))
    try {
      return await work()
    } finally {
      writeFileSync(path, text)
    }
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
