// The state of a database as its engine sees it.

/**
 * The services that run on the database. `running` is null where that cannot be told; `by` names the processes or
 * clients that have it open.
 */
export type ServiceStatus = { running: boolean | null; by: string[] }

/** A standby as its primary sees it; null is what the role of the URL may not see, or what was not measured yet. */
export type Standby = {
  name: string
  address: string | null
  state: string | null
  sync: string | null
  lagBytes: number | null
  lagSeconds: number | null
}

/** `server`: host:port of the one that answered; `unsafe`: its settings that are off and can cost plants. */
export type ClusterStatus = {
  server: string
  role: 'primary' | 'standby'
  standbys: Standby[]
  unsafe: string[]
}

/** The state of a database. `bytes`: on disk. */
export type EngineStatus = {
  engineVersion: string
  bytes: number
  service: ServiceStatus
  /** Null where there is no server. */
  cluster: ClusterStatus | null
}
