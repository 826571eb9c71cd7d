-- +goose Up

-- Sums of the answers that count, by half hours since 1970, so that days and hours of nearly every zone are made of
-- them. Triggers keep them, so that they are right whatever changes answers. place is a hash of project and machine,
-- which may be longer than an index takes.
CREATE TABLE usage_sums (
  owner          bigint NOT NULL,
  slot           bigint NOT NULL,
  place          uuid NOT NULL,
  model          text COLLATE "C" NOT NULL,          -- its first 200 characters
  long           boolean NOT NULL,                   -- requests above 200 000 tokens
  project_hash   text COLLATE "C" NOT NULL,
  project        text COLLATE "C" NOT NULL,
  machine        text COLLATE "C" NOT NULL,
  answers        bigint NOT NULL,
  input          bigint NOT NULL,
  output         bigint NOT NULL,
  cache_read     bigint NOT NULL,
  cache_write_5m bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  PRIMARY KEY (owner, slot, place, model, long)
);
CREATE INDEX usage_sums_empty ON usage_sums (owner) WHERE answers = 0;

CREATE FUNCTION usage_slot(at bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT (at - (at % 1800000000 + 1800000000) % 1800000000) / 1800000000 $$;
CREATE FUNCTION usage_place(hash text, project text, machine text) RETURNS uuid LANGUAGE sql IMMUTABLE AS
$$ SELECT md5(md5(hash) || md5(project) || md5(machine))::uuid $$;

LOCK TABLE answers IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO usage_sums
SELECT a.owner, usage_slot(a.time), usage_place(s.project_hash, s.project, s.machine), left(a.model, 200),
  a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, s.project_hash, s.project, s.machine,
  count(*), sum(a.input), sum(a.output), sum(a.cache_read), sum(a.cache_write_5m), sum(a.cache_write_1h)
FROM answers a JOIN streams s ON s.id = a.stream WHERE a.counted GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;

-- For the half hours at both ends of a question.
CREATE INDEX answers_time ON answers (owner, time) WHERE counted;

-- Adds answers that count from now on, and takes those away that do no more. Whoever changes answers has the lock of
-- their owner.
-- +goose StatementBegin
CREATE FUNCTION usage_apply(come answers[], gone answers[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(s.project_hash, s.project, s.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, s.project_hash, s.project, s.machine,
    sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)
  FROM (SELECT 1 AS n, x.* FROM unnest(come) x UNION ALL SELECT -1, x.* FROM unnest(gone) x) a
  JOIN streams s ON s.id = a.stream
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
CREATE FUNCTION usage_answers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    IF EXISTS (SELECT FROM come WHERE counted) THEN
      PERFORM usage_apply(ARRAY(SELECT ROW(x.*)::answers FROM come x WHERE counted), '{}');
    END IF;
  ELSIF TG_OP = 'DELETE' THEN
    PERFORM usage_apply('{}', ARRAY(SELECT ROW(x.*)::answers FROM gone x WHERE counted));
  ELSIF EXISTS (SELECT FROM come) THEN
    PERFORM usage_apply(ARRAY(SELECT ROW(x.*)::answers FROM come x WHERE counted),
      ARRAY(SELECT ROW(x.*)::answers FROM gone x WHERE counted));
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER usage_added AFTER INSERT ON answers REFERENCING NEW TABLE AS come
FOR EACH STATEMENT EXECUTE FUNCTION usage_answers();
CREATE TRIGGER usage_removed AFTER DELETE ON answers REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION usage_answers();
CREATE TRIGGER usage_changed AFTER UPDATE ON answers REFERENCING OLD TABLE AS gone NEW TABLE AS come
FOR EACH STATEMENT EXECUTE FUNCTION usage_answers();

-- A stream's project changes seldom: then nobody else counts answers of its owner. The lock is lockOwner.
-- +goose StatementBegin
CREATE FUNCTION usage_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(1667432450, NEW.owner::int);
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(p.hash, p.project, NEW.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, p.hash, p.project, NEW.machine,
    sum(p.n), sum(p.n * a.input), sum(p.n * a.output), sum(p.n * a.cache_read), sum(p.n * a.cache_write_5m),
    sum(p.n * a.cache_write_1h)
  FROM (VALUES (-1, OLD.project_hash, OLD.project), (1, NEW.project_hash, NEW.project)) p (n, hash, project)
  CROSS JOIN answers a WHERE a.stream = NEW.id AND a.counted
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
CREATE TRIGGER usage_moved AFTER UPDATE OF project_hash, project ON streams FOR EACH ROW
WHEN (OLD.project_hash <> NEW.project_hash OR OLD.project <> NEW.project) EXECUTE FUNCTION usage_moved();

-- +goose Down
DROP TRIGGER usage_moved ON streams;
DROP TRIGGER usage_changed ON answers;
DROP TRIGGER usage_removed ON answers;
DROP TRIGGER usage_added ON answers;
DROP FUNCTION usage_moved, usage_answers, usage_apply, usage_place, usage_slot;
DROP INDEX answers_time;
DROP TABLE usage_sums;
