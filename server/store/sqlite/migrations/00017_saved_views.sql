-- +goose Up

-- What users filter by, kept under a name.
CREATE TABLE saved_views (
  owner   INTEGER NOT NULL,                 -- user
  name    TEXT NOT NULL,
  page    TEXT NOT NULL,                    -- whose filters they are
  query   TEXT NOT NULL,                    -- of its address
  updated INTEGER NOT NULL,
  PRIMARY KEY (owner, name)
) WITHOUT ROWID;
-- +goose StatementBegin
CREATE TRIGGER saved_views_forgotten AFTER DELETE ON users BEGIN
  DELETE FROM saved_views WHERE owner = old.id;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER saved_views_forgotten;
DROP TABLE saved_views;
