// What `status` shows of a database.

/** The services on a database. `running`: null when unknown; `by`: names of the processes or clients that use it. */
export type ServiceStatus = { running: boolean | null; by: string[] }

/** A standby as its primary sees it. Null: not visible to the role of the URL, or not measured yet. */
export type Standby = {
  name: string
  address: string | null
  state: string | null
  sync: string | null
  lagBytes: number | null
  lagSeconds: number | null
}

/** `server`: host:port of the one that answered; `unsafe`: settings of it that can lose plants. */
export type ClusterStatus = {
  server: string
  role: 'primary' | 'standby'
  standbys: Standby[]
  unsafe: string[]
}

/** The status of a database. `bytes`: size on disk; `cluster`: null where there is no server. */
export type EngineStatus = {
  engineVersion: string
  bytes: number
  service: ServiceStatus
  cluster: ClusterStatus | null
}
