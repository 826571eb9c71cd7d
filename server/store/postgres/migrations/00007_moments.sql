-- +goose Up

-- What happened in the newest view of a stream, in the order of its lines. It can be made again from lines.
CREATE TABLE moments (
  stream bigint NOT NULL,
  line   bigint NOT NULL,
  part   bigint NOT NULL,                     -- of several on one line
  kind   text COLLATE "C" NOT NULL,
  data   bytea NOT NULL,                      -- JSON
  PRIMARY KEY (stream, line, part)
);

-- +goose Down
DROP TABLE moments;
