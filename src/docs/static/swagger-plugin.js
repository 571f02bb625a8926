// What this page does differently from Swagger UI: errors in one line each, no dialog and no title of its own, labels
// for whoever listens to the page.

/** `authorize` opens the dialog for the token. */
export function makePlugin({ authorize }) {
  return ({ React }) => {
    const nothing = () => () => null
    return {
      wrapComponents: {
        InfoContainer: nothing,
        ServersContainer: nothing,
        AuthorizeBtnContainer: nothing,
        authorizeOperationBtn: nothing,
        response: (Response) => (props) =>
          React.createElement(/^[45]/.test(props.code) ? makeErrorRow(React) : Response, props),
        liveResponse: (LiveResponse) => (props) =>
          React.createElement(
            React.Fragment,
            null,
            React.createElement(LiveResponse, props),
            props.response?.get('status') === 401 && refusal(React, authorize),
          ),
      },
    }
  }
}

let errorRow

/** One component for all rows, so that a row that is open stays open. */
function makeErrorRow(React) {
  errorRow ??= ({ code, response }) => {
    const h = React.createElement
    const examples = readExamples(response)
    return h(
      'tr',
      { className: 'response error-row', 'data-code': code },
      h('td', { className: 'response-col_status' }, code),
      h(
        'td',
        { className: 'response-col_description' },
        h('p', null, ...inlineCode(React, response.get('description') ?? '')),
        examples.length > 0 &&
          h(
            'details',
            null,
            h('summary', null, 'Example'),
            ...examples.map((example) =>
              h('pre', { tabIndex: 0 }, h('code', null, JSON.stringify(example, null, 2))),
            ),
          ),
      ),
    )
  }
  return errorRow
}

function readExamples(response) {
  const media = response.getIn(['content', 'application/problem+json'])
  const named = media?.get('examples')?.valueSeq()
  const examples = named?.map((example) => example.get('value')).toArray() ?? [media?.get('example')]
  return examples.filter((example) => example !== undefined).map((example) => example.toJS())
}

function inlineCode(React, text) {
  return text
    .split('`')
    .map((part, i) => (i % 2 === 1 ? React.createElement('code', { key: i }, part) : part))
}

function refusal(React, authorize) {
  const h = React.createElement
  return h(
    'div',
    { className: 'refusal', role: 'status' },
    h(
      'p',
      null,
      'The service wants a token that it knows. Tokens are issued where it runs, with ',
      h('code', null, 'plant-store token create --name my-laptop'),
      '. No access to that machine? Ask whoever runs the service.',
    ),
    h('button', { type: 'button', className: 'primary', onClick: authorize }, 'Enter a token'),
  )
}
