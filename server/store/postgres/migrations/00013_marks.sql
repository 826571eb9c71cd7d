-- +goose Up

-- What users keep about sessions.
CREATE TABLE marks (
  reader  bigint NOT NULL,                    -- user
  stream  bigint NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
  star    bigint NOT NULL,
  name    text COLLATE "C" NOT NULL,
  note    text COLLATE "C" NOT NULL,
  tags    text COLLATE "C" NOT NULL,          -- each between line breaks
  updated bigint NOT NULL,
  PRIMARY KEY (reader, stream)
);
CREATE INDEX marks_stream ON marks (stream);

-- +goose Down
DROP TABLE marks;
