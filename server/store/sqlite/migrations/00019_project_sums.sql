-- +goose Up

-- Sums of streams by owner, project and machine, see package sums. A row has its streams as they were at the version
-- that they were summed up at.
CREATE TABLE project_sums (
  owner        INTEGER NOT NULL,
  place        BLOB NOT NULL,               -- hash of project_hash and machine
  project_hash TEXT NOT NULL,
  machine      TEXT NOT NULL,
  newest       INTEGER NOT NULL,            -- stream; 0: it was forgotten
  last         INTEGER NOT NULL,            -- its time, and what it is called
  project      TEXT NOT NULL,
  cwd          TEXT NOT NULL,
  host         TEXT NOT NULL,
  sessions     INTEGER NOT NULL,
  bytes        INTEGER NOT NULL,
  streams      INTEGER NOT NULL,
  PRIMARY KEY (owner, place)
) WITHOUT ROWID;
CREATE INDEX project_sums_last ON project_sums (last DESC, owner, place);
CREATE INDEX project_sums_owner ON project_sums (owner, last DESC, place);
CREATE INDEX project_sums_headless ON project_sums (owner, place) WHERE newest = 0;

-- Which version of a stream is in the sums, -1 for one to sum up again, and what of it.
ALTER TABLE streams ADD COLUMN summed INTEGER NOT NULL DEFAULT -1;
ALTER TABLE streams ADD COLUMN sum_place BLOB NOT NULL DEFAULT x'';
ALTER TABLE streams ADD COLUMN sum_main INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN sum_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX streams_unsummed ON streams (owner, id) WHERE summed <> version;
CREATE INDEX streams_owner ON streams (owner, active, id);

-- What changes a stream without a new version.
-- +goose StatementBegin
CREATE TRIGGER streams_unsum AFTER UPDATE OF project_hash, project, cwd, host, parent, ended ON streams
WHEN new.summed = new.version AND (old.project_hash <> new.project_hash OR old.project <> new.project
  OR old.cwd <> new.cwd OR old.host <> new.host OR old.parent <> new.parent OR old.ended <> new.ended) BEGIN
  UPDATE streams SET summed = -1 WHERE id = new.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER generations_unsum AFTER UPDATE OF bytes ON generations WHEN new.bytes < old.bytes BEGIN
  UPDATE streams SET summed = -1 WHERE id = (SELECT stream FROM epochs WHERE id = new.epoch);
END;
-- +goose StatementEnd
-- Nothing remains of what a forgotten stream was called.
-- +goose StatementBegin
CREATE TRIGGER project_sums_forgotten AFTER DELETE ON streams WHEN old.sum_place <> x'' BEGIN
  UPDATE project_sums SET sessions = sessions - old.sum_main, bytes = bytes - old.sum_bytes, streams = streams - 1,
    project = CASE newest WHEN old.id THEN '' ELSE project END, cwd = CASE newest WHEN old.id THEN '' ELSE cwd END,
    host = CASE newest WHEN old.id THEN '' ELSE host END, newest = CASE newest WHEN old.id THEN 0 ELSE newest END
  WHERE owner = old.owner AND place = old.sum_place;
  DELETE FROM project_sums WHERE owner = old.owner AND place = old.sum_place AND streams = 0;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER project_sums_forgotten;
DROP TRIGGER generations_unsum;
DROP TRIGGER streams_unsum;
DROP INDEX streams_owner;
DROP INDEX streams_unsummed;
ALTER TABLE streams DROP COLUMN sum_bytes;
ALTER TABLE streams DROP COLUMN sum_main;
ALTER TABLE streams DROP COLUMN sum_place;
ALTER TABLE streams DROP COLUMN summed;
DROP TABLE project_sums;
