-- +goose Up

-- Lines that the server masked by itself. When they come again, they are stored with the same tokens.
CREATE TABLE masked_lines (
  stream     bigint NOT NULL,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  line       bigint NOT NULL,
  PRIMARY KEY (stream, line, epoch, generation)
);

-- How much was masked, by whom.
CREATE TABLE maskings (
  stream      bigint NOT NULL,
  asked_by    bigint NOT NULL,             -- users.id; 0: the server
  at          bigint NOT NULL,             -- the last time
  lines       bigint NOT NULL,
  checkpoints bigint NOT NULL,
  files       bigint NOT NULL,
  PRIMARY KEY (stream, asked_by)
);

-- How often something of the stream was masked.
ALTER TABLE streams ADD COLUMN masked bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE streams DROP COLUMN masked;
DROP TABLE maskings, masked_lines;
