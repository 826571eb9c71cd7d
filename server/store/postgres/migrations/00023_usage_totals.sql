-- +goose Up
-- beside: yes

-- Sums of usage_sums over all owners: by half hours, and by days of the zones that are asked for; see package sums.
-- Servers put them together in the background.
CREATE TABLE usage_totals (
  slot           bigint NOT NULL,
  model          text COLLATE "C" NOT NULL,
  long           boolean NOT NULL,
  answers        bigint NOT NULL,
  input          bigint NOT NULL,
  output         bigint NOT NULL,
  cache_read     bigint NOT NULL,
  cache_write_5m bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  PRIMARY KEY (slot, model, long)
);
CREATE TABLE usage_days (
  zone           bigint NOT NULL,           -- half hours east of UTC
  day            bigint NOT NULL,           -- since 1970, there
  model          text COLLATE "C" NOT NULL,
  long           boolean NOT NULL,
  answers        bigint NOT NULL,
  input          bigint NOT NULL,
  output         bigint NOT NULL,
  cache_read     bigint NOT NULL,
  cache_write_5m bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  PRIMARY KEY (zone, day, model, long)
);
CREATE TABLE usage_zones (
  zone bigint PRIMARY KEY                   -- of which usage_days has all days
);
INSERT INTO usage_zones VALUES (0);

-- What of a row is in the totals; total is 1 while that is all of it.
ALTER TABLE usage_sums ADD COLUMN total bigint NOT NULL DEFAULT 0, ADD COLUMN t_answers bigint NOT NULL DEFAULT 0,
  ADD COLUMN t_input bigint NOT NULL DEFAULT 0, ADD COLUMN t_output bigint NOT NULL DEFAULT 0,
  ADD COLUMN t_cache_read bigint NOT NULL DEFAULT 0, ADD COLUMN t_cache_write_5m bigint NOT NULL DEFAULT 0,
  ADD COLUMN t_cache_write_1h bigint NOT NULL DEFAULT 0;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION usage_apply(come answers[], gone answers[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(s.project_hash, s.project, s.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, s.project_hash, s.project, s.machine,
    sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)
  FROM (SELECT 1 AS n, x.* FROM unnest(come) x UNION ALL SELECT -1, x.* FROM unnest(gone) x) a
  JOIN streams s ON s.owner = a.owner AND s.id = a.stream
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  HAVING (sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)) <> (0, 0, 0, 0, 0, 0)
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (owner, slot, place, model, long) DO UPDATE SET answers = u.answers + excluded.answers,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write_5m = u.cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = u.cache_write_1h + excluded.cache_write_1h, total = 0;
  IF cardinality(gone) > 0 THEN
    DELETE FROM usage_sums WHERE answers = 0 AND t_answers = 0 AND owner IN (SELECT x.owner FROM unnest(gone) x);
  END IF;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION usage_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(1667432450, NEW.owner::int);
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(p.hash, p.project, NEW.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, p.hash, p.project, NEW.machine,
    sum(p.n), sum(p.n * a.input), sum(p.n * a.output), sum(p.n * a.cache_read), sum(p.n * a.cache_write_5m),
    sum(p.n * a.cache_write_1h)
  FROM (VALUES (-1, OLD.project_hash, OLD.project), (1, NEW.project_hash, NEW.project)) p (n, hash, project)
  CROSS JOIN answers a WHERE a.owner = NEW.owner AND a.stream = NEW.id AND a.counted
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (owner, slot, place, model, long) DO UPDATE SET answers = u.answers + excluded.answers,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write_5m = u.cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = u.cache_write_1h + excluded.cache_write_1h, total = 0;
  DELETE FROM usage_sums WHERE answers = 0 AND t_answers = 0 AND owner = NEW.owner;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION usage_apply(come answers[], gone answers[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(s.project_hash, s.project, s.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, s.project_hash, s.project, s.machine,
    sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)
  FROM (SELECT 1 AS n, x.* FROM unnest(come) x UNION ALL SELECT -1, x.* FROM unnest(gone) x) a
  JOIN streams s ON s.owner = a.owner AND s.id = a.stream
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  HAVING (sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)) <> (0, 0, 0, 0, 0, 0)
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (owner, slot, place, model, long) DO UPDATE SET answers = u.answers + excluded.answers,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write_5m = u.cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = u.cache_write_1h + excluded.cache_write_1h;
  IF cardinality(gone) > 0 THEN
    DELETE FROM usage_sums WHERE answers = 0 AND owner IN (SELECT x.owner FROM unnest(gone) x);
  END IF;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION usage_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(1667432450, NEW.owner::int);
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(p.hash, p.project, NEW.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, p.hash, p.project, NEW.machine,
    sum(p.n), sum(p.n * a.input), sum(p.n * a.output), sum(p.n * a.cache_read), sum(p.n * a.cache_write_5m),
    sum(p.n * a.cache_write_1h)
  FROM (VALUES (-1, OLD.project_hash, OLD.project), (1, NEW.project_hash, NEW.project)) p (n, hash, project)
  CROSS JOIN answers a WHERE a.owner = NEW.owner AND a.stream = NEW.id AND a.counted
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (owner, slot, place, model, long) DO UPDATE SET answers = u.answers + excluded.answers,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write_5m = u.cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = u.cache_write_1h + excluded.cache_write_1h;
  DELETE FROM usage_sums WHERE answers = 0 AND owner = NEW.owner;
  RETURN NULL;
END $$;
-- +goose StatementEnd
DELETE FROM usage_sums WHERE answers = 0;
ALTER TABLE usage_sums DROP COLUMN t_cache_write_1h, DROP COLUMN t_cache_write_5m, DROP COLUMN t_cache_read,
  DROP COLUMN t_output, DROP COLUMN t_input, DROP COLUMN t_answers, DROP COLUMN total;
DROP TABLE usage_zones, usage_days, usage_totals;
