// The token: asked for in a dialog, checked with a real request, and kept for this tab only.

const base = new URL(document.body.dataset.base, location.href)
const key = `token of ${base.pathname}`
const dialog = document.querySelector('#authorize')
const input = dialog.querySelector('input')
const verdict = dialog.querySelector('#verdict')
const forget = dialog.querySelector('#forget')

/** What the status of the answer to GET /plants?limit=0 says about the token that was sent. */
const verdicts = {
  200: 'The token is valid.',
  401: 'The service does not accept this token: it is mistyped, expired or revoked.',
  403: 'The token is valid, but only for adding plants, not for listing them.',
}

/** The same for a JWT, which is from an issuer: nobody types one, and the service cannot revoke it. */
const issuedVerdicts = {
  401: 'The service does not accept this JWT: it has expired, or was not issued for this service.',
  403: 'The JWT is valid, but its scopes do not include listing plants.',
}

let tell = () => {}
/** The number of the latest check: what an earlier one is answered does not count any more. */
let latest = 0

/** Calls `use` with the token now, and whenever there is another; an empty one when it is forgotten. */
export function watchToken(use) {
  tell = (token) => {
    showState(token !== '')
    use(token)
  }
  for (const button of document.querySelectorAll('[data-authorize]')) button.addEventListener('click', open)
  dialog.querySelector('#close').addEventListener('click', () => dialog.close())
  dialog.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault()
    void takeToken(input.value.trim().replace(/^bearer +/i, ''))
  })
  forget.addEventListener('click', () => {
    latest++
    sessionStorage.removeItem(key)
    input.value = ''
    say('', 'The token is forgotten.')
    tell('')
    input.focus()
  })
  tell(sessionStorage.getItem(key) ?? '')
}

/** Opens the dialog. It is the browser's own modal: focus stays within it, and Escape closes it. */
export function open() {
  say('', '')
  input.value = sessionStorage.getItem(key) ?? ''
  dialog.showModal()
  input.focus()
}

/** Checks a token with a request; a good one is kept and used. */
export async function takeToken(token) {
  if (token === '') return say('bad', 'Enter a token first.')
  if (/[^ -~]/.test(token)) return say('bad', 'Tokens are ASCII text. Copy the whole token, without “…”.')
  say('', 'Checking…')
  const own = ++latest
  const headers = { authorization: `Bearer ${token}` }
  const url = new URL('plants?limit=0', base)
  const answer = await fetch(url, { headers, cache: 'no-store' }).catch((error) => error)
  if (own !== latest) return
  const { status = 0, statusText } = answer
  const isGood = status === 200 || status === 403
  if (isGood) {
    sessionStorage.setItem(key, token)
    tell(token)
  }
  const isJwt = token.startsWith('eyJ')
  const said =
    (isJwt && issuedVerdicts[status]) || verdicts[status] || 'The token could not be checked. Try again.'
  const from = status === 0 ? 'There was no answer.' : `The answer was ${status} ${statusText}.`
  say(isGood ? 'good' : 'bad', `${said} ${from}`, status === 401 && !isJwt)
}

/** Says something in the dialog. `kind`: good, bad or neither. */
export function say(kind, text, withSource = false) {
  verdict.className = kind
  verdict.textContent = text
  if (withSource) verdict.append(document.querySelector('#token-source').content.cloneNode(true))
}

function showState(hasToken) {
  forget.hidden = !hasToken
  document.querySelector('[data-state]').textContent = hasToken ? 'Authorized' : 'Authorize'
  document.querySelector('#token-state').hidden = hasToken
}
