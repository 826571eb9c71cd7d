-- +goose Up

-- Lines that a rule of retention removed: they are neither sent nor stored again, and digests go on over them.
CREATE TABLE retired (
  owner      INTEGER NOT NULL,
  stream     INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  first      INTEGER NOT NULL,                  -- line
  last       INTEGER NOT NULL,                  -- line
  lines      INTEGER NOT NULL,
  raw_bytes  INTEGER NOT NULL,                  -- without newlines
  at         INTEGER NOT NULL,
  header     BLOB NOT NULL,                 -- what the lines were, as that of a block
  hashes     BLOB NOT NULL,                 -- sha256 of each line and a newline
  before     BLOB NOT NULL,                 -- sha256 of the view up to the first; empty: unknown
  state      BLOB NOT NULL,                 -- of the hash behind the last; empty: unknown
  UNIQUE (owner, stream, epoch, generation, first)
);

-- Streams of which a rule removed everything that was stored at that time.
CREATE TABLE retired_streams (
  owner  INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  says   TEXT NOT NULL,                     -- the rule, in words
  PRIMARY KEY (owner, stream)
) WITHOUT ROWID;

-- Files whose contents a rule removed.
CREATE TABLE retired_files (
  owner INTEGER NOT NULL,
  blob  INTEGER NOT NULL,
  at    INTEGER NOT NULL,
  PRIMARY KEY (owner, blob)
) WITHOUT ROWID;

-- What was applied to which transcript.
CREATE TABLE retention_log (
  owner       INTEGER NOT NULL,
  run         INTEGER NOT NULL,                 -- when the application began
  stream      INTEGER NOT NULL,
  rule        INTEGER NOT NULL,
  session_id  TEXT NOT NULL,
  machine     TEXT NOT NULL,
  asked_by    TEXT NOT NULL,
  says        TEXT NOT NULL,
  action      TEXT NOT NULL,
  at          INTEGER NOT NULL,                 -- of the last step
  generations INTEGER NOT NULL,
  lines       INTEGER NOT NULL,
  bytes       INTEGER NOT NULL,
  files       INTEGER NOT NULL,
  PRIMARY KEY (owner, run, stream, rule)
) WITHOUT ROWID;
CREATE INDEX retention_log_at ON retention_log (owner, at);

CREATE TABLE retention_rules (
  id           INTEGER PRIMARY KEY,
  what         TEXT NOT NULL,               -- generations, sessions
  action       TEXT NOT NULL,               -- drop, cold
  age          INTEGER NOT NULL,                -- microseconds; 0 any
  above        INTEGER NOT NULL,                -- bytes; 0 all
  user_id      INTEGER NOT NULL,                -- 0 everybody
  project      TEXT NOT NULL,               -- '' all
  checkpoints  INTEGER NOT NULL,                -- 1: sessions with checkpoints too
  usage        INTEGER NOT NULL,                -- 1: sums lose what was used
  asked_by     TEXT NOT NULL,
  at           INTEGER NOT NULL
);

-- What no rule touches. An empty value means all.
CREATE TABLE retention_holds (
  id         INTEGER PRIMARY KEY,
  user_id    INTEGER NOT NULL,
  project    TEXT NOT NULL,
  session_id TEXT NOT NULL,
  asked_by   TEXT NOT NULL,
  why        TEXT NOT NULL,
  at         INTEGER NOT NULL
);

-- +goose Down
DROP TABLE retention_holds;
DROP TABLE retention_rules;
DROP TABLE retention_log;
DROP TABLE retired_files;
DROP TABLE retired_streams;
DROP TABLE retired;
