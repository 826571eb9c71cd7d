-- +goose Up

-- Sums of the answers that count, by half hours since 1970, so that days and hours of nearly every zone are made of
-- them. Triggers keep them, so that they are right whatever changes answers.
CREATE TABLE usage_sums (
  owner          INTEGER NOT NULL,
  slot           INTEGER NOT NULL,
  project_hash   TEXT NOT NULL,
  project        TEXT NOT NULL,
  machine        TEXT NOT NULL,
  model          TEXT NOT NULL,             -- its first 200 characters
  long           INTEGER NOT NULL,          -- requests above 200 000 tokens
  answers        INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  cache_read     INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  PRIMARY KEY (owner, slot, project_hash, project, machine, model, long)
) WITHOUT ROWID;
INSERT INTO usage_sums
SELECT a.owner, (a.time - (a.time % 1800000000 + 1800000000) % 1800000000) / 1800000000, s.project_hash, s.project,
  s.machine, substr(a.model, 1, 200), a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000,
  count(*), sum(a.input), sum(a.output), sum(a.cache_read), sum(a.cache_write_5m), sum(a.cache_write_1h)
FROM answers a JOIN streams s ON s.id = a.stream WHERE a.counted GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- For the half hours at both ends of a question.
CREATE INDEX answers_time ON answers (owner, time) WHERE counted;

-- Who changes it, inserts here: n is 1 for an answer that counts from now on, -1 for one that does no more.
CREATE VIEW usage_changes AS SELECT 0 AS n, '' AS project_hash, '' AS project, '' AS machine, owner, time, model, input,
  output, cache_read, cache_write_5m, cache_write_1h FROM answers WHERE 0;
-- +goose StatementBegin
CREATE TRIGGER usage_changes INSTEAD OF INSERT ON usage_changes BEGIN
  INSERT INTO usage_sums
  VALUES (new.owner, (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000, new.project_hash,
    new.project, new.machine, substr(new.model, 1, 200),
    new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 200000,
    new.n, new.n * new.input, new.n * new.output, new.n * new.cache_read, new.n * new.cache_write_5m,
    new.n * new.cache_write_1h)
  ON CONFLICT DO UPDATE SET answers = answers + excluded.answers, input = input + excluded.input,
    output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
    cache_write_5m = cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = cache_write_1h + excluded.cache_write_1h;
  DELETE FROM usage_sums WHERE new.n < 0 AND answers = 0 AND owner = new.owner
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

-- +goose Down
DROP TRIGGER usage_moved;
DROP TRIGGER usage_changed;
DROP TRIGGER usage_removed;
DROP TRIGGER usage_added;
DROP VIEW usage_changes;
DROP INDEX answers_time;
DROP TABLE usage_sums;
