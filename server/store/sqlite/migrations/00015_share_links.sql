-- +goose Up

-- Links with which anybody reads one session.
CREATE TABLE share_links (
  id      INTEGER PRIMARY KEY AUTOINCREMENT, -- of a link that is gone, never used again
  hash    BLOB NOT NULL UNIQUE,              -- sha256 of the secret
  stream  INTEGER NOT NULL,
  maker   INTEGER NOT NULL,                  -- user
  "key"   INTEGER NOT NULL,                  -- it was made with; 0: none
  created INTEGER NOT NULL,
  until   INTEGER NOT NULL
);
CREATE INDEX share_links_stream ON share_links (stream);
-- +goose StatementBegin
CREATE TRIGGER share_links_forgotten AFTER DELETE ON streams BEGIN
  DELETE FROM share_links WHERE stream = old.id;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER share_links_forgotten;
DROP TABLE share_links;
