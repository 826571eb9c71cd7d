-- +goose Up

-- What daemons send beside lines. None of it can be made again from lines.

-- A share shows linked documents only when it says so.
ALTER TABLE shares ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;

-- Epochs as papers know them: they may come before the first line. rank is by first arrival, from 1.
CREATE TABLE paper_epochs (
  stream     INTEGER NOT NULL,
  rank       INTEGER NOT NULL,
  name       TEXT NOT NULL,
  name_key   BLOB NOT NULL,             -- sha256, as of all keys here: names may be longer than an index takes
  first_seen INTEGER NOT NULL,
  PRIMARY KEY (stream, rank),
  UNIQUE (stream, name_key)
);

CREATE TABLE checkpoints (
  num          INTEGER PRIMARY KEY,
  stream       INTEGER NOT NULL,
  id           TEXT NOT NULL,
  rank         INTEGER NOT NULL,             -- paper_epochs.rank of the one who said it last
  port_id      TEXT NOT NULL,
  tokens_used  INTEGER NOT NULL,
  token_budget INTEGER NOT NULL,
  cause        TEXT NOT NULL,
  context_hash TEXT NOT NULL,
  summary      TEXT NOT NULL,
  active_files TEXT NOT NULL,            -- a JSON list
  created      INTEGER NOT NULL,
  generation   INTEGER NOT NULL,
  line         INTEGER NOT NULL,             -- -1 unknown
  received     INTEGER NOT NULL,
  UNIQUE (stream, id)
);
CREATE INDEX checkpoints_id ON checkpoints (id);
CREATE INDEX checkpoints_created ON checkpoints (created, num);

CREATE TABLE documents (
  id           INTEGER PRIMARY KEY,
  stream       INTEGER NOT NULL,
  path_key     BLOB NOT NULL,
  path         TEXT NOT NULL,
  linked       INTEGER NOT NULL,
  added_at     INTEGER NOT NULL,
  added_by     TEXT NOT NULL,
  unlinked_at  INTEGER NOT NULL,
  -- Of the event that decided about linked: later ones in this order change it.
  link_rank    INTEGER NOT NULL,
  link_version INTEGER NOT NULL,
  link_at      INTEGER NOT NULL,
  UNIQUE (stream, path_key)
);

-- Never changed. Of several with one rank and n the one with the highest id shows.
CREATE TABLE document_versions (
  id        INTEGER PRIMARY KEY,
  document  INTEGER NOT NULL,
  rank      INTEGER NOT NULL,                -- paper_epochs.rank
  n         INTEGER NOT NULL,
  change    TEXT NOT NULL,
  author    TEXT NOT NULL,
  at        INTEGER NOT NULL,
  size      INTEGER NOT NULL,
  sha256    BLOB NOT NULL,               -- empty: no content
  too_large INTEGER NOT NULL,
  line      INTEGER NOT NULL,                -- -1 none
  received  INTEGER NOT NULL,
  UNIQUE (document, rank, n, change, sha256)
);
CREATE INDEX document_versions_sha256 ON document_versions (sha256);

-- Contents, one of each for an owner. They go when nothing names them any more.
CREATE TABLE blobs (
  id      INTEGER PRIMARY KEY,
  owner   INTEGER NOT NULL,
  sha256  BLOB NOT NULL,
  size    INTEGER NOT NULL,
  have    INTEGER NOT NULL,                  -- bytes that have come
  stored  INTEGER NOT NULL,                  -- when it was whole; 0: it is being uploaded
  touched INTEGER NOT NULL,
  tries   INTEGER NOT NULL,                  -- how often it was begun again
  UNIQUE (owner, sha256)
);
CREATE INDEX blobs_unfinished ON blobs (owner, touched) WHERE stored = 0;

CREATE TABLE blob_chunks (
  blob  INTEGER NOT NULL,
  place INTEGER NOT NULL,                    -- offset of its first byte
  data  BLOB NOT NULL,
  PRIMARY KEY (blob, place)
);

-- Files of sessions.
CREATE TABLE blob_refs (
  stream         INTEGER NOT NULL,
  name_key       BLOB NOT NULL,
  name           TEXT NOT NULL,
  sha256         BLOB NOT NULL,
  media          TEXT NOT NULL,
  conversational INTEGER NOT NULL,           -- 1: of the conversation; 0: a document's
  received       INTEGER NOT NULL,
  PRIMARY KEY (stream, name_key, sha256)
);
CREATE INDEX blob_refs_sha256 ON blob_refs (sha256);

CREATE TABLE wishes (
  num      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  stream   INTEGER NOT NULL,
  path     TEXT NOT NULL,
  link     INTEGER NOT NULL,
  wisher   INTEGER NOT NULL,                 -- users.id
  asked    INTEGER NOT NULL,
  state    TEXT NOT NULL,                -- waiting, done, refused
  reason   TEXT NOT NULL,
  answered INTEGER NOT NULL
);
CREATE INDEX wishes_stream ON wishes (stream, num);
CREATE INDEX wishes_waiting ON wishes (stream) WHERE state = 'waiting';
