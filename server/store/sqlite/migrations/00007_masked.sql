-- +goose Up

-- Lines that the server masked by itself. When they come again, they are stored with the same tokens.
CREATE TABLE masked_lines (
  stream     INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  PRIMARY KEY (stream, line, epoch, generation)
) WITHOUT ROWID;

-- How much was masked, by whom.
CREATE TABLE maskings (
  stream      INTEGER NOT NULL,
  asked_by    INTEGER NOT NULL,             -- users.id; 0: the server
  at          INTEGER NOT NULL,             -- the last time
  lines       INTEGER NOT NULL,
  checkpoints INTEGER NOT NULL,
  files       INTEGER NOT NULL,
  PRIMARY KEY (stream, asked_by)
) WITHOUT ROWID;

-- How often something of the stream was masked.
ALTER TABLE streams ADD COLUMN masked INTEGER NOT NULL DEFAULT 0;

-- A row: pages and the index may still hold pieces of what was masked.
CREATE TABLE scrub (due INTEGER NOT NULL);
CREATE TABLE scrub_pages (zeros BLOB NOT NULL);

-- +goose Down
DROP TABLE scrub_pages;
DROP TABLE scrub;
ALTER TABLE streams DROP COLUMN masked;
DROP TABLE maskings;
DROP TABLE masked_lines;
