// The settings of an issuer (OIDC) whose tokens are accepted.
import { setting } from './setting.ts'
import { choose, readIssuer, readNames, readScopePrefix, readSecureUrl } from './values.ts'

export const issuerSettings = {
  oidcIssuer: setting({
    name: 'OIDC_ISSUER',
    value: 'url',
    description: 'Issuer whose JWTs are accepted, too: https, to the letter as in iss. Needs OIDC_AUDIENCE.',
    default: '',
    defaultLabel: 'off',
    read: readIssuer,
  }),
  oidcAudience: setting({
    name: 'OIDC_AUDIENCE',
    value: 'names',
    description: 'What the aud of a JWT must hold one of, separated by commas.',
    default: '',
    defaultLabel: 'off',
    read: readNames,
  }),
  oidcJwksUrl: setting({
    name: 'OIDC_JWKS_URL',
    value: 'url',
    description: 'Where the keys of the issuer are, when it has no discovery document.',
    default: '',
    defaultLabel: 'where the issuer says',
    read: readSecureUrl,
  }),
  oidcTokenType: setting({
    name: 'OIDC_TOKEN_TYPE',
    value: 'type',
    description: 'typ of the JWTs. at+jwt: RFC 9068; JWT takes at+jwt and none, too.',
    default: 'at+jwt',
    read: choose('at+jwt', 'JWT'),
  }),
  oidcScopeClaim: setting({
    name: 'OIDC_SCOPE_CLAIM',
    value: 'names',
    description: 'Claims that hold the scopes of a JWT, separated by commas.',
    default: 'scope,scp,permissions',
    read: readNames,
  }),
  oidcScopePrefix: setting({
    name: 'OIDC_SCOPE_PREFIX',
    value: 'text',
    description: 'What stands before plants:read and plants:write in those scopes.',
    default: '',
    defaultLabel: 'nothing',
    read: readScopePrefix,
  }),
}
