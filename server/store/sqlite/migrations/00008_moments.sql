-- +goose Up

-- What happened in the newest view of a stream, in the order of its lines. It can be made again from lines.
CREATE TABLE moments (
  stream INTEGER NOT NULL,
  line   INTEGER NOT NULL,
  part   INTEGER NOT NULL,                  -- of several on one line
  kind   TEXT NOT NULL,
  data   BLOB NOT NULL,                     -- JSON
  PRIMARY KEY (stream, line, part)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE moments;
