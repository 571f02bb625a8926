// Completes a page: inserts the origin of the service into commands, adds a button to copy each command, and makes wide
// parts scrollable by keyboard.

for (const origin of document.querySelectorAll('[data-origin]')) origin.textContent = location.origin

for (const wide of document.querySelectorAll('pre, .prose table')) wide.tabIndex = 0

for (const code of document.querySelectorAll('.language-sh')) {
  const button = Object.assign(document.createElement('button'), { className: 'copy', textContent: 'Copy' })
  button.addEventListener('click', async () => {
    await copy(code)
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 2000)
  })
  code.after(button)
}

/** On pages over plain HTTP, except on localhost, browsers provide no clipboard; `execCommand` still works. */
async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent)
  getSelection().selectAllChildren(code)
  document.execCommand('copy')
}
