// Changes to Swagger UI for this page: errors in one line each, no dialog and no title of its own, labels for screen
// readers.

/** `authorize` opens the dialog for the token. */
export function makePlugin({ authorize }) {
  return ({ React }) => {
    const h = React.createElement
    const ErrorRow = makeErrorRow(React)
    return {
      components: {
        Layout: ({ getComponent }) =>
          h('div', { className: 'swagger-ui' }, h(getComponent('operations', true))),
      },
      wrapComponents: {
        // There is one tag: its heading would say nothing.
        OperationTag: () => (props) => h('div', null, props.children),
        authorizeOperationBtn: () => () => null,
        // A link within the button that opens the operation could not be reached by keyboard.
        DeepLink: () => (props) => h('span', null, props.text),
        ExamplesSelect: (ExamplesSelect) => (props) =>
          h(
            'label',
            { className: 'examples', hidden: props.examples.size < 2 },
            'Example',
            h(ExamplesSelect, { ...props, showLabels: false }),
          ),
        // An operation is resolved after it is opened. Until then a click would be lost, or leave it loading forever.
        execute: (Execute) => (props) =>
          h(Execute, { ...props, disabled: props.disabled || !isResolved(props) }),
        TextArea: (TextArea) => (props) => h(TextArea, { 'aria-label': 'Request body', ...props }),
        // Swagger UI's headings begin two levels below those of the page.
        OperationSummary: (Summary) => (props) =>
          h('div', { role: 'heading', 'aria-level': 3 }, h(Summary, props)),
        curl: () => (props) => showCommand(React, props.getSystem?.() ?? props, props.request),
        responses: (Responses) => (props) => showResponses(React, Responses, props),
        response: (Response) => (props) => h(/^[45]/.test(props.code) ? ErrorRow : Response, props),
        liveResponse: (LiveResponse) => (props) =>
          h(
            'div',
            { ref: useFocus(React, props.response), tabIndex: -1, role: 'group', 'aria-label': 'Answer' },
            explain(React, props.response, authorize),
            h(LiveResponse, props),
          ),
      },
    }
  }
}

/** Moves the focus to a new answer: the button that was pressed is gone. */
function useFocus(React, response) {
  const place = React.useRef(null)
  React.useEffect(() => {
    const { activeElement } = document
    if (activeElement === document.body || activeElement.matches('.execute')) place.current.focus()
  }, [response])
  return place
}

/** The request as a command, without the token. */
function showCommand(React, { fn }, request) {
  const h = React.createElement
  const text = fn.requestSnippetGenerator_curl_bash(request)
  const command = text.replace(/'(Authorization: Bearer )[^']*'/i, '"$1$TOKEN"')
  return h(
    'div',
    { className: 'command' },
    h('pre', { tabIndex: 0 }, h('code', null, command)),
    h('button', { type: 'button', className: 'copy' }, 'Copy'),
  )
}

/** The answer to a tried request first, if there is one, and the documented ones folded below it. */
function showResponses(React, Responses, props) {
  const h = React.createElement
  const { tryItOutResponse: response, getComponent, method, path } = props
  const name = (element) =>
    element
      ?.querySelector('.responses-table')
      ?.setAttribute('aria-label', `Documented answers: ${method} ${path}`)
  const documented = h('div', { ref: name }, h(Responses, { ...props, tryItOutResponse: undefined }))
  if (!response) return documented
  const Answer = getComponent('liveResponse')
  return h(
    React.Fragment,
    null,
    h('div', { className: 'responses-inner' }, h(Answer, { ...props, response })),
    h('details', { className: 'documented' }, h('summary', null, 'All documented answers'), documented),
  )
}

function isResolved({ specSelectors, path, method }) {
  return specSelectors.specResolvedSubtree(['paths', path, method]) !== undefined
}

/** An error in one line, and an example for whoever opens it. */
function makeErrorRow(React) {
  const h = React.createElement
  const showExample = (example, key) =>
    h('pre', { key, tabIndex: 0 }, h('code', null, JSON.stringify(example, null, 2)))
  const pages = (examples) =>
    Object.entries(Object.fromEntries(examples.map(({ type, title }) => [type, title])))
      .filter(([type]) => type !== 'about:blank')
      .map(([type, title]) => h('a', { key: type, href: type }, title))
  return ({ code, response }) => {
    const examples = readExamples(response)
    const description = inlineCode(React, response.get('description') ?? '')
    return h(
      'tr',
      { className: 'response error-row', 'data-code': code },
      h('td', { className: 'response-col_status' }, code),
      h(
        'td',
        { className: 'response-col_description' },
        examples.length === 0
          ? h('p', null, description)
          : h(
              'details',
              null,
              h('summary', null, description),
              ...pages(examples),
              ...examples.map(showExample),
            ),
      ),
    )
  }
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

/** The text above the answer to a tried request, if that is an error: how to get a token, or what the problem means. */
function explain(React, response, authorize) {
  if (response?.get('status') === 401) return refusal(React, authorize)
  const { type = 'about:blank', title, detail } = readProblem(response)
  if (type === 'about:blank') return null
  const page = React.createElement('a', { href: type }, 'What it means and what to do')
  return React.createElement('p', { className: 'explanation' }, `${title}. ${detail} `, page)
}

function readProblem(response) {
  const type = response?.getIn(['headers', 'content-type']) ?? ''
  return String(type).startsWith('application/problem+json') ? JSON.parse(response.get('text') || '{}') : {}
}

function refusal(React, authorize) {
  const h = React.createElement
  return h(
    'div',
    { className: 'refusal', role: 'status' },
    h(
      'p',
      null,
      'A valid token is required. Tokens are issued on the machine of the service, with ',
      h('code', null, 'plant-store token create --name laptop'),
      '. No access to that machine? Ask its operator.',
    ),
    h('button', { type: 'button', className: 'primary', onClick: authorize }, 'Enter a token'),
  )
}
