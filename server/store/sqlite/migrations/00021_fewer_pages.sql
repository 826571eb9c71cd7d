-- +goose Up

-- Fewer pages change with each write.

-- Answers of a stream stand together: what is derived of it changes one page or two, and not one for each answer.
DROP TRIGGER usage_moved;
DROP TRIGGER usage_changed;
DROP TRIGGER usage_removed;
DROP TRIGGER usage_added;
DROP TRIGGER usage_changes;
DROP VIEW usage_changes;
CREATE TABLE answers_by_stream (
  owner          INTEGER NOT NULL,
  key            TEXT NOT NULL,
  stream         INTEGER NOT NULL,
  counted        INTEGER NOT NULL,
  sidechain      INTEGER NOT NULL,
  model          TEXT NOT NULL,
  time           INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  cache_read     INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  PRIMARY KEY (stream, key)
) WITHOUT ROWID;
INSERT INTO answers_by_stream SELECT owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m,
  cache_write_1h FROM answers
ORDER BY stream, key;
DROP TABLE answers;
ALTER TABLE answers_by_stream RENAME TO answers;
CREATE INDEX answers_key ON answers (owner, key);
CREATE INDEX answers_time ON answers (owner, time) WHERE counted;
CREATE VIEW usage_changes AS SELECT 0 AS n, '' AS project_hash, '' AS project, '' AS machine, owner, time, model, input,
  output, cache_read, cache_write_5m, cache_write_1h FROM answers WHERE 0;
-- +goose StatementBegin
CREATE TRIGGER usage_changes INSTEAD OF INSERT ON usage_changes BEGIN
  INSERT INTO usage_sums (owner, slot, project_hash, project, machine, model, long, answers, input, output, cache_read,
    cache_write_5m, cache_write_1h)
  VALUES (new.owner, (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000, new.project_hash,
    new.project, new.machine, substr(new.model, 1, 200),
    new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 200000,
    new.n, new.n * new.input, new.n * new.output, new.n * new.cache_read, new.n * new.cache_write_5m,
    new.n * new.cache_write_1h)
  ON CONFLICT DO UPDATE SET answers = answers + excluded.answers, input = input + excluded.input,
    output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
    cache_write_5m = cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = cache_write_1h + excluded.cache_write_1h, total = 0;
  DELETE FROM usage_sums WHERE new.n < 0 AND answers = 0 AND t_answers = 0 AND owner = new.owner
    AND slot = (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000
    AND project_hash = new.project_hash AND project = new.project AND machine = new.machine;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_added AFTER INSERT ON answers WHEN new.counted BEGIN
  INSERT INTO usage_changes SELECT 1, project_hash, project, machine, new.owner, new.time, new.model, new.input,
    new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h FROM streams WHERE id = new.stream;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_removed AFTER DELETE ON answers WHEN old.counted BEGIN
  INSERT INTO usage_changes SELECT -1, project_hash, project, machine, old.owner, old.time, old.model, old.input,
    old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h FROM streams WHERE id = old.stream;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_changed AFTER UPDATE ON answers WHEN (old.counted OR new.counted) AND (old.counted, old.time,
  old.model, old.input, old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h) <> (new.counted, new.time,
  new.model, new.input, new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h) BEGIN
  INSERT INTO usage_changes SELECT -1, project_hash, project, machine, old.owner, old.time, old.model, old.input,
    old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h FROM streams
    WHERE id = old.stream AND old.counted;
  INSERT INTO usage_changes SELECT 1, project_hash, project, machine, new.owner, new.time, new.model, new.input,
    new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h FROM streams
    WHERE id = new.stream AND new.counted;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_moved AFTER UPDATE OF project_hash, project ON streams
WHEN old.project_hash <> new.project_hash OR old.project <> new.project BEGIN
  INSERT INTO usage_changes SELECT -1, old.project_hash, old.project, old.machine, owner, time, model, input, output,
    cache_read, cache_write_5m, cache_write_1h FROM answers WHERE stream = old.id AND counted;
  INSERT INTO usage_changes SELECT 1, new.project_hash, new.project, new.machine, owner, time, model, input, output,
    cache_read, cache_write_5m, cache_write_1h FROM answers WHERE stream = new.id AND counted;
END;
-- +goose StatementEnd

-- summed is the version of a stream, or -1: most writes find -1 and leave it, and the index, as they are.
DROP INDEX streams_unsummed;
UPDATE streams SET summed = -1 WHERE summed <> version;
CREATE INDEX streams_unsummed ON streams (owner, id) WHERE summed < 0;
-- +goose StatementBegin
CREATE TRIGGER streams_unsum_version AFTER UPDATE OF version ON streams WHEN new.summed >= 0 BEGIN
  UPDATE streams SET summed = -1 WHERE id = new.id;
END;
-- +goose StatementEnd

-- A machine asks for it when it or this server went back in time: then its owner's streams are looked through.
DROP INDEX streams_changed;

-- +goose Down
CREATE INDEX streams_changed ON streams (owner, machine, changed);
DROP TRIGGER streams_unsum_version;
DROP INDEX streams_unsummed;
CREATE INDEX streams_unsummed ON streams (owner, id) WHERE summed <> version;
DROP TRIGGER usage_moved;
DROP TRIGGER usage_changed;
DROP TRIGGER usage_removed;
DROP TRIGGER usage_added;
DROP TRIGGER usage_changes;
DROP VIEW usage_changes;
CREATE TABLE answers_by_key (
  owner          INTEGER NOT NULL,
  key            TEXT NOT NULL,
  stream         INTEGER NOT NULL,
  counted        INTEGER NOT NULL,
  sidechain      INTEGER NOT NULL,
  model          TEXT NOT NULL,
  time           INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  cache_read     INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  PRIMARY KEY (owner, key, stream)
) WITHOUT ROWID;
INSERT INTO answers_by_key SELECT owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m,
  cache_write_1h FROM answers;
DROP TABLE answers;
ALTER TABLE answers_by_key RENAME TO answers;
CREATE INDEX answers_stream
ON answers (stream, counted, model, time, input, output, cache_read, cache_write_5m, cache_write_1h);
CREATE INDEX answers_time ON answers (owner, time) WHERE counted;
CREATE VIEW usage_changes AS SELECT 0 AS n, '' AS project_hash, '' AS project, '' AS machine, owner, time, model, input,
  output, cache_read, cache_write_5m, cache_write_1h FROM answers WHERE 0;
-- +goose StatementBegin
CREATE TRIGGER usage_changes INSTEAD OF INSERT ON usage_changes BEGIN
  INSERT INTO usage_sums (owner, slot, project_hash, project, machine, model, long, answers, input, output, cache_read,
    cache_write_5m, cache_write_1h)
  VALUES (new.owner, (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000, new.project_hash,
    new.project, new.machine, substr(new.model, 1, 200),
    new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 200000,
    new.n, new.n * new.input, new.n * new.output, new.n * new.cache_read, new.n * new.cache_write_5m,
    new.n * new.cache_write_1h)
  ON CONFLICT DO UPDATE SET answers = answers + excluded.answers, input = input + excluded.input,
    output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
    cache_write_5m = cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = cache_write_1h + excluded.cache_write_1h, total = 0;
  DELETE FROM usage_sums WHERE new.n < 0 AND answers = 0 AND t_answers = 0 AND owner = new.owner
    AND slot = (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000
    AND project_hash = new.project_hash AND project = new.project AND machine = new.machine;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_added AFTER INSERT ON answers WHEN new.counted BEGIN
  INSERT INTO usage_changes SELECT 1, project_hash, project, machine, new.owner, new.time, new.model, new.input,
    new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h FROM streams WHERE id = new.stream;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_removed AFTER DELETE ON answers WHEN old.counted BEGIN
  INSERT INTO usage_changes SELECT -1, project_hash, project, machine, old.owner, old.time, old.model, old.input,
    old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h FROM streams WHERE id = old.stream;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_changed AFTER UPDATE ON answers WHEN (old.counted OR new.counted) AND (old.counted, old.time,
  old.model, old.input, old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h) <> (new.counted, new.time,
  new.model, new.input, new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h) BEGIN
  INSERT INTO usage_changes SELECT -1, project_hash, project, machine, old.owner, old.time, old.model, old.input,
    old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h FROM streams
    WHERE id = old.stream AND old.counted;
  INSERT INTO usage_changes SELECT 1, project_hash, project, machine, new.owner, new.time, new.model, new.input,
    new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h FROM streams
    WHERE id = new.stream AND new.counted;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_moved AFTER UPDATE OF project_hash, project ON streams
WHEN old.project_hash <> new.project_hash OR old.project <> new.project BEGIN
  INSERT INTO usage_changes SELECT -1, old.project_hash, old.project, old.machine, owner, time, model, input, output,
    cache_read, cache_write_5m, cache_write_1h FROM answers WHERE stream = old.id AND counted;
  INSERT INTO usage_changes SELECT 1, new.project_hash, new.project, new.machine, owner, time, model, input, output,
    cache_read, cache_write_5m, cache_write_1h FROM answers WHERE stream = new.id AND counted;
END;
-- +goose StatementEnd
