-- +goose Up

-- All in this file can be made again from lines.

-- A stream lags while version, which each batch raises, is above derived. redo: lines came behind what is derived.
ALTER TABLE streams ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE streams ADD COLUMN derived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN redo INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN leased INTEGER NOT NULL DEFAULT 0;  -- until then somebody derives it
CREATE INDEX streams_lagging ON streams (last_received) WHERE version > derived;

-- How far each stream is derived.
CREATE TABLE folds (
  stream     INTEGER PRIMARY KEY,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  format     INTEGER NOT NULL,
  state      BLOB NOT NULL
);

CREATE TABLE facts (
  stream       INTEGER PRIMARY KEY,
  title        TEXT NOT NULL,
  first_prompt TEXT NOT NULL,
  folded       TEXT NOT NULL,               -- both, in lower case
  model        TEXT NOT NULL,
  models       TEXT NOT NULL,               -- a newline before each and behind the last
  branch       TEXT NOT NULL,
  version      TEXT NOT NULL,
  started      INTEGER NOT NULL,
  ended        INTEGER NOT NULL,
  prompts      INTEGER NOT NULL,
  messages     INTEGER NOT NULL,
  tools        INTEGER NOT NULL,
  errors       INTEGER NOT NULL,
  compactions  INTEGER NOT NULL,
  context      INTEGER NOT NULL,
  window       INTEGER NOT NULL,
  compact_at   INTEGER NOT NULL,
  lines        INTEGER NOT NULL
);

-- Each stream's copy of an answer; of all copies that an owner has, one is counted.
CREATE TABLE answers (
  owner          INTEGER NOT NULL,
  key            TEXT NOT NULL,
  stream         INTEGER NOT NULL,
  counted        INTEGER NOT NULL,
  sidechain      INTEGER NOT NULL,
  model          TEXT NOT NULL,
  time           INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  cache_read     INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  PRIMARY KEY (owner, key, stream)
) WITHOUT ROWID;
CREATE INDEX answers_stream
ON answers (stream, counted, model, time, input, output, cache_read, cache_write_5m, cache_write_1h);

-- id is the line's time in milliseconds, shifted, so that a search that walks ids backwards meets the newest first.
CREATE TABLE texts (
  id         INTEGER PRIMARY KEY,
  stream     INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  text       TEXT NOT NULL,
  UNIQUE (epoch, generation, line, kind)
);

-- Which texts have which three characters next to each other. No positions: what is found is looked at again.
CREATE VIRTUAL TABLE texts_index USING fts5(
  text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1'
);

CREATE TABLE drops (
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  lines      INTEGER NOT NULL,              -- 0: none, but looked at
  PRIMARY KEY (epoch, generation)
) WITHOUT ROWID;
