-- +goose Up

-- Lines of a generation, packed: see package block. Those of a generation do not overlap. A row of lines is in force
-- where a block has the line too.
CREATE TABLE blocks (
  owner      bigint NOT NULL,
  stream     bigint NOT NULL,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  first      bigint NOT NULL,               -- line
  last       bigint NOT NULL,               -- line, of the block too
  lines      bigint NOT NULL,
  raw_bytes  bigint NOT NULL,               -- without newlines
  sha256     bytea NOT NULL,                -- of everything else in the block
  header     bytea NOT NULL,
  data       bytea NOT NULL,
  PRIMARY KEY (owner, stream, epoch, generation, first)
);
-- They are compressed already.
ALTER TABLE blocks ALTER data SET STORAGE EXTERNAL, ALTER header SET STORAGE EXTERNAL;

-- +goose Down
DROP TABLE blocks;
