-- +goose Up

-- What a user may store: 0 is the server's own limit, -1 none.
ALTER TABLE users ADD COLUMN quota_bytes bigint NOT NULL DEFAULT 0,
  ADD COLUMN quota_sessions bigint NOT NULL DEFAULT 0;

-- Bytes of a stream's lines, of those they replaced, and of its checkpoints. Triggers keep it, so that it is right
-- whatever changes those, servers of the version before among them. Files count for their user.
ALTER TABLE streams ADD COLUMN stored bigint NOT NULL DEFAULT 0;
LOCK TABLE generations, superseded, checkpoints IN SHARE ROW EXCLUSIVE MODE;
UPDATE streams s SET stored =
  (SELECT coalesce(sum(bytes), 0) FROM generations WHERE stream = s.id) +
  (SELECT coalesce(sum(octet_length(raw) + 1), 0) FROM superseded WHERE stream = s.id) +
  (SELECT coalesce(sum(octet_length(summary) + octet_length(active_files)), 0) FROM checkpoints WHERE stream = s.id);

-- +goose StatementBegin
CREATE FUNCTION stored_lines() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE streams SET stored = stored + NEW.bytes - OLD.bytes WHERE id = NEW.stream;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER stored_lines AFTER UPDATE OF bytes ON generations
FOR EACH ROW WHEN (NEW.bytes <> OLD.bytes) EXECUTE FUNCTION stored_lines();

-- +goose StatementBegin
CREATE FUNCTION stored_replaced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    UPDATE streams SET stored = stored + octet_length(NEW.raw) + 1 WHERE id = NEW.stream;
  ELSE
    UPDATE streams SET stored = stored - octet_length(OLD.raw) - 1 WHERE id = OLD.stream;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER stored_replaced AFTER INSERT OR DELETE ON superseded
FOR EACH ROW EXECUTE FUNCTION stored_replaced();

-- +goose StatementBegin
CREATE FUNCTION stored_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
  before bigint := 0;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    before := octet_length(OLD.summary) + octet_length(OLD.active_files);
  END IF;
  UPDATE streams SET stored = stored + octet_length(NEW.summary) + octet_length(NEW.active_files) - before
  WHERE id = NEW.stream;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER stored_checkpoint AFTER INSERT OR UPDATE OF summary, active_files ON checkpoints
FOR EACH ROW EXECUTE FUNCTION stored_checkpoint();

-- +goose Down
DROP TRIGGER stored_checkpoint ON checkpoints;
DROP TRIGGER stored_replaced ON superseded;
DROP TRIGGER stored_lines ON generations;
DROP FUNCTION stored_checkpoint, stored_replaced, stored_lines;
ALTER TABLE streams DROP COLUMN stored;
ALTER TABLE users DROP COLUMN quota_bytes, DROP COLUMN quota_sessions;
