-- +goose Up

-- What a user may store: 0 is the server's own limit, -1 none.
ALTER TABLE users ADD COLUMN quota_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN quota_sessions INTEGER NOT NULL DEFAULT 0;

-- Bytes of a stream's lines, of those they replaced, and of its checkpoints. Triggers keep it, so that it is right
-- whatever changes those. Files count for their user.
ALTER TABLE streams ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;
UPDATE streams SET stored =
  (SELECT coalesce(sum(g.bytes), 0) FROM epochs e JOIN generations g ON g.epoch = e.id WHERE e.stream = streams.id) +
  (SELECT coalesce(sum(length(p.raw) + 1), 0) FROM epochs e JOIN superseded p ON p.epoch = e.id
    WHERE e.stream = streams.id) +
  (SELECT coalesce(sum(length(CAST(c.summary AS BLOB)) + length(CAST(c.active_files AS BLOB))), 0)
    FROM checkpoints c WHERE c.stream = streams.id);

-- +goose StatementBegin
CREATE TRIGGER stored_lines AFTER UPDATE OF bytes ON generations WHEN new.bytes <> old.bytes BEGIN
  UPDATE streams SET stored = stored + new.bytes - old.bytes
  WHERE id = (SELECT stream FROM epochs WHERE id = new.epoch);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_replaced AFTER INSERT ON superseded BEGIN
  UPDATE streams SET stored = stored + length(new.raw) + 1
  WHERE id = (SELECT stream FROM epochs WHERE id = new.epoch);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_replaced_gone AFTER DELETE ON superseded BEGIN
  UPDATE streams SET stored = stored - length(old.raw) - 1
  WHERE id = (SELECT stream FROM epochs WHERE id = old.epoch);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_checkpoint AFTER INSERT ON checkpoints BEGIN
  UPDATE streams SET stored = stored + length(CAST(new.summary AS BLOB)) + length(CAST(new.active_files AS BLOB))
  WHERE id = new.stream;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_checkpoint_again AFTER UPDATE OF summary, active_files ON checkpoints BEGIN
  UPDATE streams SET stored = stored + length(CAST(new.summary AS BLOB)) + length(CAST(new.active_files AS BLOB))
    - length(CAST(old.summary AS BLOB)) - length(CAST(old.active_files AS BLOB))
  WHERE id = new.stream;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER stored_checkpoint_again;
DROP TRIGGER stored_checkpoint;
DROP TRIGGER stored_replaced_gone;
DROP TRIGGER stored_replaced;
DROP TRIGGER stored_lines;
ALTER TABLE streams DROP COLUMN stored;
ALTER TABLE users DROP COLUMN quota_sessions;
ALTER TABLE users DROP COLUMN quota_bytes;
