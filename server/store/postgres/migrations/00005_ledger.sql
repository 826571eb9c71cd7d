-- +goose Up

-- Which store this is. A restored backup gets another id.
CREATE TABLE store_identity (id text COLLATE "C" NOT NULL);
INSERT INTO store_identity VALUES (md5(random()::text || clock_timestamp()::text || random()::text));

-- How many writes came from a machine of a user, and which incarnation of its daemon sent the last one.
CREATE TABLE ledgers (
  owner       bigint NOT NULL,
  machine_key bytea NOT NULL,                 -- sha256
  count       bigint NOT NULL,
  writer      text COLLATE "C" NOT NULL,      -- '' for clients that name none
  PRIMARY KEY (owner, machine_key)
) WITH (fillfactor = 50);

-- Incarnations from which another one took over, the latest of each machine.
CREATE TABLE replaced_writers (
  owner       bigint NOT NULL,
  machine_key bytea NOT NULL,
  writer      text COLLATE "C" NOT NULL,
  count       bigint NOT NULL,                -- of the ledger when it was replaced
  PRIMARY KEY (owner, machine_key, writer)
);

ALTER TABLE streams ADD COLUMN changed bigint NOT NULL DEFAULT 0; -- count of the ledger at the last write
CREATE INDEX streams_changed ON streams (owner, machine_key, changed);

-- +goose Down
DROP INDEX streams_changed;
ALTER TABLE streams DROP COLUMN changed;
DROP TABLE replaced_writers, ledgers, store_identity;
