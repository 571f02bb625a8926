// Adapts Swagger UI: the header of the site, dark mode, a token that is kept for this tab, and help after an error.

const tokenKey = `token of ${new URL('../../..', document.currentScript.src).pathname}`

const viewport = { name: 'viewport', content: 'width=device-width, initial-scale=1' }
document.head.append(Object.assign(document.createElement('meta'), viewport))
// The service replaces the names in braces.
document.body.insertAdjacentHTML('afterbegin', `{{header}}`)
document.querySelector('.skip').hash = '#swagger-ui'

const dark = matchMedia('(prefers-color-scheme: dark)')
dark.onchange = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.onchange()

/** A plugin of Swagger UI, named in its configuration. */
window.plantStorePlugin = function plantStorePlugin({ React }) {
  const h = React.createElement
  const useToken = ({ authActions }, token) => {
    const schema = { type: 'http', scheme: 'bearer' }
    if (token) authActions.authorize({ bearer: { name: 'bearer', schema, value: token } })
  }
  // Swagger UI does not update an open dialog, although the issuer's metadata may arrive later.
  const updateResolvedSubtree = (original, system) => (path, tree) => {
    const { authActions, authSelectors } = system.getSystem()
    const issuer = tree.components?.securitySchemes?.oidc?.openIdConnectData
    // Swagger UI would show a form for each grant type of the issuer.
    if (issuer) issuer.grant_types_supported = ['authorization_code']
    const updated = original(path, tree)
    if (authSelectors.shownDefinitions()) authActions.showDefinitions(authSelectors.definitionsToAuthorize())
    return updated
  }
  const authorize = (original) => (payload) => {
    if (payload.bearer) {
      payload.bearer.value = payload.bearer.value.trim().replace(/^bearer +/i, '')
      sessionStorage.setItem(tokenKey, payload.bearer.value)
    }
    return original(payload)
  }
  const logout = (original) => () => {
    sessionStorage.removeItem(tokenKey)
    return original(['bearer', 'oidc'])
  }
  // Requests send the issuer's token like a pasted one, so logging out removes both.
  const authorizeOauth2 = (original, system) => (payload) => {
    useToken(system, payload.token.access_token)
    return original(payload)
  }
  return {
    afterLoad: ({ getSystem }) => setTimeout(() => useToken(getSystem(), sessionStorage.getItem(tokenKey))),
    statePlugins: {
      spec: { wrapActions: { updateResolvedSubtree } },
      auth: { wrapActions: { authorize, logout, authorizeOauth2 } },
    },
    wrapComponents: {
      responses: (Responses) => (props) => showResponses(React, Responses, props),
      liveResponse: (LiveResponse) => (props) =>
        h('div', null, explain(h, props.response), h(LiveResponse, props)),
      // An operation is resolved after it is opened; until then a click would be lost.
      execute: (Execute) => (props) => {
        const isResolved = props.specSelectors.specResolvedSubtree(['paths', props.path, props.method])
        return h(Execute, { ...props, disabled: props.disabled || !isResolved })
      },
      // Labels for screen readers.
      ExamplesSelect: (ExamplesSelect) => (props) => {
        const select = h(ExamplesSelect, { ...props, showLabels: false })
        return h('label', { className: 'examples', hidden: props.examples.size < 2 }, 'Example: ', select)
      },
      TextArea: (TextArea) => (props) => h(TextArea, { 'aria-label': 'Request body', ...props }),
    },
  }
}

/** Shows the response to an executed request, and the documented responses in a closed section below it. */
function showResponses({ createElement: h, Fragment }, Responses, props) {
  const { tryItOutResponse: response, getComponent } = props
  const live = response && h(getComponent('liveResponse'), { ...props, response })
  const answer = live && h('div', { className: 'responses-inner' }, live)
  const summary = h('summary', null, 'All documented responses')
  const documented = h(Responses, { ...props, tryItOutResponse: undefined })
  return h(Fragment, null, answer, h('details', { className: 'documented' }, summary, documented))
}

/** Explains an error: how to get a token, or what the problem means. */
function explain(h, response) {
  const text = (...parts) => h('p', { className: 'explanation', role: 'status' }, ...parts)
  const command = h('code', null, '{{command}} token create --name laptop')
  if (response?.get('status') === 401)
    return text('A valid token is required: select Authorize. To create one on the server: ', command)
  const isProblem = `${response?.getIn(['headers', 'content-type'])}`.startsWith('application/problem+json')
  const { type = 'about:blank', title, detail } = isProblem ? JSON.parse(response.get('text') || '{}') : {}
  if (type === 'about:blank') return null
  return text(`${title}. ${detail} `, h('a', { href: type }, 'What it means and what to do'))
}
