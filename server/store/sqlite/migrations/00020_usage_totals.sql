-- +goose Up

-- Sums of usage_sums over all owners: by half hours, and by days of the zones that are asked for; see package sums.
CREATE TABLE usage_totals (
  slot           INTEGER NOT NULL,
  model          TEXT NOT NULL,
  long           INTEGER NOT NULL,
  answers        INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  cache_read     INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  PRIMARY KEY (slot, model, long)
) WITHOUT ROWID;
CREATE TABLE usage_days (
  zone           INTEGER NOT NULL,          -- half hours east of UTC
  day            INTEGER NOT NULL,          -- since 1970, there
  model          TEXT NOT NULL,
  long           INTEGER NOT NULL,
  answers        INTEGER NOT NULL,
  input          INTEGER NOT NULL,
  output         INTEGER NOT NULL,
  cache_read     INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  PRIMARY KEY (zone, day, model, long)
) WITHOUT ROWID;
CREATE TABLE usage_zones (
  zone INTEGER PRIMARY KEY                  -- of which usage_days has all days
);
INSERT INTO usage_zones VALUES (0);

-- What of a row is in the totals; total is 1 while that is all of it.
ALTER TABLE usage_sums ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN t_answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN t_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN t_output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN t_cache_read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN t_cache_write_5m INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_sums ADD COLUMN t_cache_write_1h INTEGER NOT NULL DEFAULT 0;
CREATE INDEX usage_sums_untotalled ON usage_sums (owner, slot) WHERE total = 0;

DROP TRIGGER usage_changes;
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

-- +goose Down
DROP TRIGGER usage_changes;
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
DROP INDEX usage_sums_untotalled;
DELETE FROM usage_sums WHERE answers = 0;
ALTER TABLE usage_sums DROP COLUMN t_cache_write_1h;
ALTER TABLE usage_sums DROP COLUMN t_cache_write_5m;
ALTER TABLE usage_sums DROP COLUMN t_cache_read;
ALTER TABLE usage_sums DROP COLUMN t_output;
ALTER TABLE usage_sums DROP COLUMN t_input;
ALTER TABLE usage_sums DROP COLUMN t_answers;
ALTER TABLE usage_sums DROP COLUMN total;
DROP TABLE usage_zones;
DROP TABLE usage_days;
DROP TABLE usage_totals;
