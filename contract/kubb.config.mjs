// What kubb makes: validators in zod. Types come along, since its zod plugin names them.
import { defineConfig } from '@kubb/core'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginTs } from '@kubb/plugin-ts'
import { pluginZod } from '@kubb/plugin-zod'

// biome-ignore lint/style/noDefaultExport: kubb takes nothing else.
export default defineConfig({
  input: { path: '../openapi.yaml' },
  output: { path: 'generated/kubb', clean: true, format: false },
  plugins: [
    pluginOas({ generators: [] }),
    pluginTs({ output: { path: 'types.ts' } }),
    pluginZod({ output: { path: 'zod.ts' }, version: '4' }),
  ],
})
