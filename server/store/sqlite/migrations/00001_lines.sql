-- +goose Up

-- owner is whose streams they are; one server has one owner so far, ''.
CREATE TABLE streams (
  id             INTEGER PRIMARY KEY,
  owner          TEXT NOT NULL DEFAULT '',
  session_id     TEXT NOT NULL,
  machine        TEXT NOT NULL,             -- '' for bare clients
  project_hash   TEXT NOT NULL,
  host           TEXT NOT NULL,
  project        TEXT NOT NULL,
  cwd            TEXT NOT NULL,
  path           TEXT NOT NULL,
  parent         TEXT NOT NULL,
  first_received INTEGER NOT NULL,          -- Unix microseconds, as all times here
  last_received  INTEGER NOT NULL,
  UNIQUE (owner, session_id, machine)
);
CREATE INDEX streams_recent ON streams (last_received, id);

CREATE TABLE epochs (
  id         INTEGER PRIMARY KEY,
  stream     INTEGER NOT NULL REFERENCES streams (id),
  name       TEXT NOT NULL,                 -- '' for bare clients
  rank       INTEGER NOT NULL,              -- by first arrival, from 1; the highest is in front
  first_seen INTEGER NOT NULL,
  UNIQUE (stream, name)
);

CREATE TABLE generations (
  epoch       INTEGER NOT NULL REFERENCES epochs (id),
  generation  INTEGER NOT NULL,
  rewound_to  INTEGER NOT NULL,
  end_line    INTEGER NOT NULL,             -- the highest any request named
  end_offset  INTEGER NOT NULL,             -- the highest any request named; 0 unknown
  eof_newline INTEGER NOT NULL,             -- of the request with that offset
  bytes       INTEGER NOT NULL,             -- stored, newlines counted
  first_seen  INTEGER NOT NULL,
  PRIMARY KEY (epoch, generation)
) WITHOUT ROWID;

-- Clustered in reading order. kind stands before raw so that counting never touches overflow pages.
CREATE TABLE lines (
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,              -- 0 object, 1 opaque, 2 oversize note
  raw        BLOB NOT NULL,
  PRIMARY KEY (epoch, generation, line)
) WITHOUT ROWID;

-- Bytes of a line that later ones with the same key replaced. Never deleted.
CREATE TABLE superseded (
  id         INTEGER PRIMARY KEY,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  raw        BLOB NOT NULL,
  replaced   INTEGER NOT NULL
);

CREATE TABLE keys (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  hash    BLOB NOT NULL UNIQUE,             -- sha256 of the key
  created INTEGER NOT NULL,
  used    INTEGER NOT NULL DEFAULT 0,
  revoked INTEGER NOT NULL DEFAULT 0
);

-- +goose Down
DROP TABLE keys;
DROP TABLE superseded;
DROP TABLE lines;
DROP TABLE generations;
DROP TABLE epochs;
DROP TABLE streams;
