// What clients are promised, once more with two threads that serve requests: the same tests, whichever thread is met.
process.env.TEST_THREADS = '2'

for (const suite of ['adding', 'listing', 'headers', 'contract']) await import(`./${suite}.test.ts`)
