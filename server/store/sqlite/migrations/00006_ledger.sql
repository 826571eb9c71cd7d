-- +goose Up

-- Which store this is. A restored backup gets another id.
CREATE TABLE store_identity (id TEXT NOT NULL);
INSERT INTO store_identity VALUES (lower(hex(randomblob(16))));

-- How many writes came from a machine of a user, and which incarnation of its daemon sent the last one.
CREATE TABLE ledgers (
  owner       INTEGER NOT NULL,
  machine_key BLOB NOT NULL,                -- sha256
  count       INTEGER NOT NULL,
  writer      TEXT NOT NULL,                -- '' for clients that name none
  PRIMARY KEY (owner, machine_key)
) WITHOUT ROWID;

-- Incarnations from which another one took over, the latest of each machine.
CREATE TABLE replaced_writers (
  owner       INTEGER NOT NULL,
  machine_key BLOB NOT NULL,
  writer      TEXT NOT NULL,
  count       INTEGER NOT NULL,             -- of the ledger when it was replaced
  PRIMARY KEY (owner, machine_key, writer)
) WITHOUT ROWID;

ALTER TABLE streams ADD COLUMN changed INTEGER NOT NULL DEFAULT 0; -- count of the ledger at the last write
CREATE INDEX streams_changed ON streams (owner, machine, changed);
CREATE INDEX superseded_line ON superseded (epoch, generation, line);

-- +goose Down
DROP INDEX superseded_line;
DROP INDEX streams_changed;
ALTER TABLE streams DROP COLUMN changed;
DROP TABLE replaced_writers;
DROP TABLE ledgers;
DROP TABLE store_identity;
