-- +goose Up

-- Lines of a generation, packed: see package block. Those of a generation do not overlap. A row of lines is in force
-- where a block has the line too. What is large stands last, so that looking at the rest reads no page of it.
CREATE TABLE blocks (
  id         INTEGER PRIMARY KEY,
  owner      INTEGER NOT NULL,
  stream     INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  first      INTEGER NOT NULL,              -- line
  last       INTEGER NOT NULL,              -- line, of the block too
  lines      INTEGER NOT NULL,
  raw_bytes  INTEGER NOT NULL,              -- without newlines
  sha256     BLOB NOT NULL,                 -- of everything else in the block
  header     BLOB NOT NULL,
  data       BLOB NOT NULL,
  UNIQUE (owner, stream, epoch, generation, first)
);

-- +goose Down
DROP TABLE blocks;
