// Sign in at the issuer: Swagger UI's own authorization code flow with PKCE. Its token is taken as if it had been pasted.
import { open, say, takeToken } from './authorize.js'

const { client, scopes, resource } = document.querySelector('#sign-in').dataset

/** Sent to the issuer as well, if there is one: by RFC 8707, and as some issuers had it before. */
const additionalQueryStringParams = resource ? { resource, audience: resource } : {}

function signIn({ authActions, authSelectors, getComponent, ...system }) {
  const isCode = (schema) => schema?.get('flow') === 'authorization_code'
  const known = authSelectors.definitionsToAuthorize()?.map((definition) => definition.get('oidc'))
  const schema = known?.find(isCode)
  open()
  if (!schema) return say('bad', 'The issuer has not answered yet. Try again, or reload the page.')
  say('', 'Sign in on the page of the issuer, which has been opened.')
  authActions.configureAuth({
    clientId: client,
    scopes: scopes.split(' '),
    usePkceWithAuthorizationCodeGrant: true,
    additionalQueryStringParams,
  })
  const Flow = getComponent('oauth2')
  new Flow({ ...system, authActions, authSelectors, name: 'oidc', schema }).authorize()
}

window.docsPlugins = [
  {
    afterLoad(system) {
      for (const button of document.querySelectorAll('[data-sign-in]'))
        button.addEventListener('click', () => signIn(system.getSystem()))
    },
    statePlugins: {
      auth: {
        wrapActions: {
          authorizeOauth2:
            () =>
            ({ token }) =>
              void takeToken(token.access_token),
        },
      },
      err: {
        wrapActions: {
          newAuthErr:
            () =>
            ({ message }) =>
              say('bad', `Signing in failed: ${message}`),
        },
      },
    },
  },
]
