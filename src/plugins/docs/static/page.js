// Completes a page: the address of the service in commands, a button to copy each, and wide parts in reach of the keyboard.

for (const origin of document.querySelectorAll('[data-origin]')) origin.textContent = location.origin

for (const wide of document.querySelectorAll('pre, .prose table')) wide.tabIndex = 0

for (const code of document.querySelectorAll('.language-sh')) {
  const button = document.createElement('button')
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    await copy(code)
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 2000)
  })
  code.after(button)
}

/** Over plain http browsers give scripts no clipboard, except on localhost; this command still works. */
async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent)
  getSelection().selectAllChildren(code)
  document.execCommand('copy')
}
