// Completes the page: the address it was reached at, the token, and the operations.
import { open, watchToken } from './authorize.js'
import './copy.js'
import { makePlugin } from './swagger-plugin.js'

const base = new URL(document.body.dataset.base, location.href)

for (const element of document.querySelectorAll('[data-origin]')) element.textContent = location.origin

let token = ''
let useToken = () => {}
watchToken((latest) => {
  token = latest
  useToken()
})

/** Plugins of further scripts of the page. */
const further = window.docsPlugins ?? []

/** The document as this page shows it: operations are tried here, wherever the document says the service is. */
function adapt(contract) {
  // Swagger UI would look its issuer up, which the page may not do without the script for it.
  if (further.length === 0) delete contract.components.securitySchemes.oidc
  return { ...contract, security: [{ bearer: [] }], servers: [{ url: base.href.replace(/\/$/, '') }] }
}

async function showOperations() {
  const answer = await fetch(new URL('openapi.json', base))
  if (!answer.ok) throw new Error(`the contract: ${answer.status}`)
  const { promise: shown, resolve } = Promise.withResolvers()
  const ui = window.SwaggerUIBundle({
    spec: adapt(await answer.json()),
    dom_id: '#operations',
    presets: [window.SwaggerUIBundle.presets.apis],
    plugins: [makePlugin({ authorize: open }), ...further],
    layout: 'Layout',
    deepLinking: true,
    defaultModelsExpandDepth: -1,
    tryItOutEnabled: true,
    validatorUrl: null,
    onComplete: resolve,
  })
  await shown
  useToken = () => {
    if (token !== '') ui.preauthorizeApiKey('bearer', token)
    else if (ui.authSelectors.authorized()?.has('bearer')) ui.authActions.logout(['bearer'])
  }
  useToken()
}

showOperations().catch(() => {
  document.querySelector('#operations').textContent = 'The operations could not be loaded. Reload the page.'
})
