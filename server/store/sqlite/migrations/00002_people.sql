-- +goose Up

-- Who ships and reads. What was there before belongs to user 1.
CREATE TABLE users (
  id       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  role     TEXT NOT NULL,                   -- owner, member, viewer
  created  INTEGER NOT NULL,
  disabled INTEGER NOT NULL DEFAULT 0
);
INSERT INTO users (id, name, role, created)
SELECT 1, 'owner', 'owner', coalesce((SELECT min(created) FROM keys), (SELECT min(first_received) FROM streams))
WHERE EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM streams);

ALTER TABLE keys ADD COLUMN user INTEGER NOT NULL DEFAULT 1;

CREATE TABLE shares (
  with_user    INTEGER NOT NULL,            -- who may see
  owner        INTEGER NOT NULL,            -- whose
  project_hash TEXT NOT NULL,
  project      TEXT NOT NULL,
  created      INTEGER NOT NULL,
  PRIMARY KEY (with_user, owner, project_hash)
) WITHOUT ROWID;

CREATE TABLE logins (
  token BLOB PRIMARY KEY,                   -- sha256, as of tickets
  user  INTEGER NOT NULL,
  key   INTEGER NOT NULL,                   -- 0: made with a ticket
  until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE tickets (
  ticket BLOB PRIMARY KEY,
  user   INTEGER NOT NULL,
  until  INTEGER NOT NULL
) WITHOUT ROWID;

-- owner becomes a user's id; 0 is nobody's.
CREATE TABLE owned_streams (
  id             INTEGER PRIMARY KEY,
  owner          INTEGER NOT NULL,
  session_id     TEXT NOT NULL,
  machine        TEXT NOT NULL,
  project_hash   TEXT NOT NULL,
  host           TEXT NOT NULL,
  project        TEXT NOT NULL,
  cwd            TEXT NOT NULL,
  path           TEXT NOT NULL,
  parent         TEXT NOT NULL,
  first_received INTEGER NOT NULL,
  last_received  INTEGER NOT NULL,
  ended          INTEGER NOT NULL DEFAULT 0, -- derived: time of the newest record
  -- What lists go by: an import brings what was written long ago, the newest first. No clock is believed beyond arrival.
  active         INTEGER GENERATED ALWAYS AS (CASE WHEN ended > 0 AND ended < last_received THEN ended ELSE last_received END) STORED,
  UNIQUE (owner, session_id, machine)
);
INSERT INTO owned_streams (id, owner, session_id, machine, project_hash, host, project, cwd, path, parent,
  first_received, last_received)
SELECT id, 1, session_id, machine, project_hash, host, project, cwd, path, parent, first_received, last_received
FROM streams;
DROP TABLE streams;
ALTER TABLE owned_streams RENAME TO streams;
CREATE INDEX streams_recent ON streams (active, id);
CREATE INDEX streams_session ON streams (session_id);
CREATE INDEX streams_parent ON streams (parent, owner) WHERE parent <> '';

-- When the bytes arrived. 0: before this was kept; then it is as old as its generation.
ALTER TABLE lines ADD COLUMN received INTEGER NOT NULL DEFAULT 0;

-- Sessions that are not to be stored again, and with them their agents.
CREATE TABLE forgotten (
  owner      INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  at         INTEGER NOT NULL,
  lines      INTEGER NOT NULL,
  PRIMARY KEY (owner, session_id)
) WITHOUT ROWID;
