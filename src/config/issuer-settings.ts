// The settings of an issuer (OIDC) whose tokens are accepted.
import { setting } from './setting.ts'
import { choose, readIssuer, readNames, readScopePrefix, readSecureUrl } from './values.ts'

export const issuerSettings = {
  oidcIssuer: setting({
    name: 'OIDC_ISSUER',
    value: 'url',
    description:
      'Issuer whose JWTs are accepted as well: an https URL, exactly as in iss. Needs OIDC_AUDIENCE.',
    default: '',
    defaultLabel: 'off',
    read: readIssuer,
  }),
  oidcAudience: setting({
    name: 'OIDC_AUDIENCE',
    value: 'names',
    description: 'Audiences, separated by commas; the aud of a JWT must contain one of them.',
    default: '',
    defaultLabel: 'off',
    read: readNames,
  }),
  oidcJwksUrl: setting({
    name: 'OIDC_JWKS_URL',
    value: 'url',
    description: 'URL of the keys of the issuer, if it has no discovery document.',
    default: '',
    defaultLabel: 'as the issuer says',
    read: readSecureUrl,
  }),
  oidcTokenType: setting({
    name: 'OIDC_TOKEN_TYPE',
    value: 'type',
    description: 'Type (typ) of the JWTs. at+jwt: RFC 9068; JWT also accepts at+jwt and no typ.',
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
    description: 'Prefix of plants:read and plants:write in those scopes.',
    default: '',
    defaultLabel: 'none',
    read: readScopePrefix,
  }),
}
