// The settings of an issuer (OIDC) whose tokens are accepted.
import { setting } from './setting.ts'
import { choose, readIssuer, readNames, readScopePrefix, readSecureUrl } from './values.ts'

export const issuerSettings = {
  oidcIssuer: setting({
    name: 'OIDC_ISSUER',
    value: 'url',
    about: 'Issuer whose JWTs are accepted, too: https, to the letter as in iss. Needs OIDC_AUDIENCE.',
    initial: '',
    otherwise: 'off',
    read: readIssuer,
  }),
  oidcAudience: setting({
    name: 'OIDC_AUDIENCE',
    value: 'names',
    about: 'What the aud of a JWT must hold one of, separated by commas.',
    initial: '',
    otherwise: 'off',
    read: readNames,
  }),
  oidcJwksUrl: setting({
    name: 'OIDC_JWKS_URL',
    value: 'url',
    about: 'Where the keys of the issuer are, when it has no discovery document.',
    initial: '',
    otherwise: 'where the issuer says',
    read: readSecureUrl,
  }),
  oidcTokenType: setting({
    name: 'OIDC_TOKEN_TYPE',
    value: 'type',
    about: 'typ of the JWTs. at+jwt: RFC 9068; JWT takes at+jwt and none, too.',
    initial: 'at+jwt',
    read: choose('at+jwt', 'JWT'),
  }),
  oidcScopeClaim: setting({
    name: 'OIDC_SCOPE_CLAIM',
    value: 'names',
    about: 'Claims that hold the scopes of a JWT, separated by commas.',
    initial: 'scope,scp,permissions',
    read: readNames,
  }),
  oidcScopePrefix: setting({
    name: 'OIDC_SCOPE_PREFIX',
    value: 'text',
    about: 'What stands before plants:read and plants:write in those scopes.',
    initial: '',
    otherwise: 'nothing',
    read: readScopePrefix,
  }),
}
