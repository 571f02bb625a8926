// token: issues, lists, rotates and revokes access tokens.
import { Command } from 'commander'
import { createCommand } from './token/create.ts'
import { listCommand } from './token/list.ts'
import { revokeCommand } from './token/revoke.ts'
import { rotateCommand } from './token/rotate.ts'

export function tokenCommand(): Command {
  const command = new Command('token').description('Issue, list, rotate and revoke access tokens.')
  for (const verb of [createCommand(), listCommand(), rotateCommand(), revokeCommand()])
    command.addCommand(verb)
  return command
}
