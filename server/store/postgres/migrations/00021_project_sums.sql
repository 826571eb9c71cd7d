-- +goose Up
-- beside: yes

-- Sums of streams by owner, project and machine, see package sums. A row has its streams as they were at the version
-- that they were summed up at. Servers sum up in the background.
CREATE TABLE project_sums (
  owner        bigint NOT NULL,
  place        bytea NOT NULL,              -- hash of project_hash and machine
  project_hash text COLLATE "C" NOT NULL,
  machine      text COLLATE "C" NOT NULL,
  newest       bigint NOT NULL,             -- stream; 0: it was forgotten
  last         bigint NOT NULL,             -- its time, and what it is called
  project      text COLLATE "C" NOT NULL,
  cwd          text COLLATE "C" NOT NULL,
  host         text COLLATE "C" NOT NULL,
  sessions     bigint NOT NULL,
  bytes        bigint NOT NULL,
  streams      bigint NOT NULL,
  PRIMARY KEY (owner, place)
);
CREATE INDEX project_sums_last ON project_sums (last DESC, owner, place);
CREATE INDEX project_sums_owner ON project_sums (owner, last DESC, place);
CREATE INDEX project_sums_headless ON project_sums (owner, place) WHERE newest = 0;

-- Which version of a stream is in the sums, -1 for one to sum up again, and what of it.
ALTER TABLE streams ADD COLUMN summed bigint NOT NULL DEFAULT -1, ADD COLUMN sum_place bytea NOT NULL DEFAULT '',
  ADD COLUMN sum_main bigint NOT NULL DEFAULT 0, ADD COLUMN sum_bytes bigint NOT NULL DEFAULT 0;

-- What changes a stream without a new version.
-- +goose StatementBegin
CREATE FUNCTION streams_unsum() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.summed := -1;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER streams_unsum BEFORE UPDATE OF project_hash, project, cwd, host, parent, ended ON streams FOR EACH ROW
WHEN (NEW.summed = NEW.version AND (OLD.project_hash <> NEW.project_hash OR OLD.project <> NEW.project
  OR OLD.cwd <> NEW.cwd OR OLD.host <> NEW.host OR OLD.parent <> NEW.parent OR OLD.ended <> NEW.ended))
EXECUTE FUNCTION streams_unsum();
-- +goose StatementBegin
CREATE FUNCTION generations_unsum() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE streams SET summed = -1 WHERE owner = NEW.owner AND id = NEW.stream;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER generations_unsum AFTER UPDATE OF bytes ON generations FOR EACH ROW WHEN (NEW.bytes < OLD.bytes)
EXECUTE FUNCTION generations_unsum();
-- Nothing remains of what a forgotten stream was called.
-- +goose StatementBegin
CREATE FUNCTION project_sums_forgotten() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE project_sums p SET sessions = sessions - OLD.sum_main, bytes = bytes - OLD.sum_bytes, streams = streams - 1,
    project = CASE newest WHEN OLD.id THEN '' ELSE project END, cwd = CASE newest WHEN OLD.id THEN '' ELSE cwd END,
    host = CASE newest WHEN OLD.id THEN '' ELSE host END, newest = CASE newest WHEN OLD.id THEN 0 ELSE newest END
  WHERE owner = OLD.owner AND place = OLD.sum_place;
  DELETE FROM project_sums WHERE owner = OLD.owner AND place = OLD.sum_place AND streams = 0;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER project_sums_forgotten AFTER DELETE ON streams FOR EACH ROW WHEN (OLD.sum_place <> '')
EXECUTE FUNCTION project_sums_forgotten();

-- +goose Down
DROP TRIGGER project_sums_forgotten ON streams;
DROP TRIGGER generations_unsum ON generations;
DROP TRIGGER streams_unsum ON streams;
DROP FUNCTION project_sums_forgotten, generations_unsum, streams_unsum;
ALTER TABLE streams DROP COLUMN sum_bytes, DROP COLUMN sum_main, DROP COLUMN sum_place, DROP COLUMN summed;
DROP TABLE project_sums;
