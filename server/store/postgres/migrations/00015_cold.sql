-- +goose Up

-- Where what is old is kept, outside of the database: see package cold. One row.
CREATE TABLE cold (
  one   bigint PRIMARY KEY CHECK (one = 1),
  id    text NOT NULL,                      -- the folder of this database there
  place text NOT NULL                       -- a URL; '' none
);
INSERT INTO cold (one, id, place) VALUES (1, replace(gen_random_uuid()::text, '-', ''), '');

-- Objects of blocks have a stream and no blob, those of files a blob and no stream.
CREATE TABLE cold_objects (
  owner  bigint NOT NULL,
  stream bigint NOT NULL,
  blob   bigint NOT NULL,
  id     text NOT NULL,
  size   bigint NOT NULL,
  sha256 bytea NOT NULL,
  state  bigint NOT NULL,                   -- 0 being written, 1 in use, 2 to be removed
  at     bigint NOT NULL,                   -- of the state
  PRIMARY KEY (owner, stream, blob, id)
);
CREATE INDEX cold_objects_pending ON cold_objects (owner, at) WHERE state <> 1;

-- Where the data of a block is that has none.
CREATE TABLE cold_blocks (
  owner      bigint NOT NULL,
  stream     bigint NOT NULL,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  first      bigint NOT NULL,
  object     text NOT NULL,
  place      bigint NOT NULL,               -- offset
  size       bigint NOT NULL,
  PRIMARY KEY (owner, stream, epoch, generation, first)
);

-- Where a piece of a file is that blob_chunks has not.
CREATE TABLE cold_chunks (
  owner  bigint NOT NULL,
  blob   bigint NOT NULL,
  place  bigint NOT NULL,                   -- offset in the file
  object text NOT NULL,
  PRIMARY KEY (owner, blob, place)
);

-- Streams of which nothing is left to move, as long as they have this version.
CREATE TABLE cold_streams (
  owner   bigint NOT NULL,
  stream  bigint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (owner, stream)
);

-- Who does something that one process does at a time.
CREATE TABLE leases (
  name   text PRIMARY KEY,
  holder text NOT NULL,
  until  bigint NOT NULL
);

-- +goose Down
DROP TABLE leases;
DROP TABLE cold_streams;
DROP TABLE cold_chunks;
DROP TABLE cold_blocks;
DROP TABLE cold_objects;
DROP TABLE cold;
