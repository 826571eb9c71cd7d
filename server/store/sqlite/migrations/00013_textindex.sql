-- +goose Up

-- An index of texts by owner, of which only the program knows the format; see package textindex. Texts themselves are
-- read from lines. All of it is derived from lines, and made again in the background.
DROP TABLE texts_index;
DROP TABLE texts;

-- How often a stream was derived from its beginning, or masked: what is indexed of earlier rounds counts only behind
-- what is derived in this one.
ALTER TABLE streams ADD COLUMN round INTEGER NOT NULL DEFAULT 0;

CREATE TABLE gram_segments (
  owner  INTEGER NOT NULL,
  id     INTEGER NOT NULL,
  level  INTEGER NOT NULL,                  -- by size; -1: being made, -2: not read any more
  docs   INTEGER NOT NULL,
  newest INTEGER NOT NULL,                  -- time of the newest line, and of the oldest
  oldest INTEGER NOT NULL,
  bytes  INTEGER NOT NULL,
  until  INTEGER NOT NULL,                  -- being made: who makes it is alive until then
  data   BLOB NOT NULL,                     -- pages of a small segment; larger ones have gram_pages
  UNIQUE (owner, id)
);

CREATE TABLE gram_pages (
  owner   INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  part    INTEGER NOT NULL,                 -- 0: docs, first is a number; 1: grams, first is one
  first   INTEGER NOT NULL,
  data    BLOB NOT NULL,
  UNIQUE (owner, segment, part, first)
);

-- What of streams must not remain in segments: docs of rounds below one.
CREATE TABLE gram_purges (
  owner  INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  round  INTEGER NOT NULL,
  PRIMARY KEY (owner, stream)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE gram_segments;
DROP TABLE gram_pages;
DROP TABLE gram_purges;
ALTER TABLE streams DROP COLUMN round;
CREATE TABLE texts (
  id         INTEGER PRIMARY KEY,
  stream     INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  text       TEXT NOT NULL
);
