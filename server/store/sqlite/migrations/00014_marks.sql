-- +goose Up

-- What users keep about sessions.
CREATE TABLE marks (
  reader  INTEGER NOT NULL,                 -- user
  stream  INTEGER NOT NULL,
  star    INTEGER NOT NULL,
  name    TEXT NOT NULL,
  note    TEXT NOT NULL,
  tags    TEXT NOT NULL,                    -- each between line breaks
  updated INTEGER NOT NULL,
  PRIMARY KEY (reader, stream)
) WITHOUT ROWID;
CREATE INDEX marks_stream ON marks (stream);
-- +goose StatementBegin
CREATE TRIGGER marks_forgotten AFTER DELETE ON streams BEGIN
  DELETE FROM marks WHERE stream = old.id;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER marks_forgotten;
DROP TABLE marks;
