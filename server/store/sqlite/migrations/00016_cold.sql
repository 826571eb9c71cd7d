-- +goose Up

-- Where what is old is kept, outside of the database: see package cold. One row.
CREATE TABLE cold (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  id    TEXT NOT NULL,                      -- the folder of this database there
  place TEXT NOT NULL                       -- a URL; '' none
);
INSERT INTO cold (one, id, place) VALUES (1, lower(hex(randomblob(16))), '');

-- Objects of blocks have a stream and no blob, those of files a blob and no stream.
CREATE TABLE cold_objects (
  owner  INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  blob   INTEGER NOT NULL,
  id     TEXT NOT NULL,
  size   INTEGER NOT NULL,
  sha256 BLOB NOT NULL,
  state  INTEGER NOT NULL,                  -- 0 being written, 1 in use, 2 to be removed
  at     INTEGER NOT NULL,                  -- of the state
  PRIMARY KEY (owner, stream, blob, id)
) WITHOUT ROWID;
CREATE INDEX cold_objects_pending ON cold_objects (owner, at) WHERE state <> 1;

-- Where the data of a block is that has none.
CREATE TABLE cold_blocks (
  owner      INTEGER NOT NULL,
  stream     INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  first      INTEGER NOT NULL,
  object     TEXT NOT NULL,
  place      INTEGER NOT NULL,              -- offset
  size       INTEGER NOT NULL,
  PRIMARY KEY (owner, stream, epoch, generation, first)
) WITHOUT ROWID;

-- Where a piece of a file is that blob_chunks has not.
CREATE TABLE cold_chunks (
  owner  INTEGER NOT NULL,
  blob   INTEGER NOT NULL,
  place  INTEGER NOT NULL,                  -- offset in the file
  object TEXT NOT NULL,
  PRIMARY KEY (owner, blob, place)
) WITHOUT ROWID;

-- Streams of which nothing is left to move, as long as they have this version.
CREATE TABLE cold_streams (
  owner   INTEGER NOT NULL,
  stream  INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (owner, stream)
) WITHOUT ROWID;

-- Who does something that one process does at a time.
CREATE TABLE leases (
  name   TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until  INTEGER NOT NULL
) WITHOUT ROWID;

-- +goose Down
DROP TABLE leases;
DROP TABLE cold_streams;
DROP TABLE cold_chunks;
DROP TABLE cold_blocks;
DROP TABLE cold_objects;
DROP TABLE cold;
