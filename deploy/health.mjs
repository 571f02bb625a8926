// The health check of the image: whether the admin server says that the service is ready.
const response = await fetch(`http://127.0.0.1:${process.env.ADMIN_PORT}/readyz`)
if (!response.ok) console.error(await response.text())
process.exit(response.ok ? 0 : 1)
