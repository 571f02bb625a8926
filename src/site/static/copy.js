// Copies the command beside a pressed button.

document.documentElement.classList.add('scripted')

document.addEventListener('click', async ({ target }) => {
  if (!target.matches('.copy')) return
  await copy(target.parentElement.querySelector('code'))
  target.textContent = 'Copied'
  setTimeout(() => (target.textContent = 'Copy'), 2000)
})

/** Over plain http on another address than localhost browsers have no clipboard for scripts, but still this command. */
async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent)
  getSelection().selectAllChildren(code)
  document.execCommand('copy')
}
