// token: issues, lists, rotates and revokes access tokens.
import { Command } from 'commander'
import { createCommand } from './token/create.ts'
import { explainCommand } from './token/explain.ts'
import { listCommand } from './token/list.ts'
import { revokeCommand } from './token/revoke.ts'
import { rotateCommand } from './token/rotate.ts'

export function makeCommand(): Command {
  const command = new Command('token')
  const verbs = [createCommand(), listCommand(), rotateCommand(), revokeCommand(), explainCommand()]
  for (const verb of verbs) command.addCommand(verb)
  return command
}
