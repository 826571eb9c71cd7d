-- +goose Up

-- An index of texts by owner, of which only the program knows the format; see package textindex. Texts themselves are
-- read from lines. All of it is derived from lines, and made again in the background.
DROP TABLE IF EXISTS texts;

-- How often a stream was derived from its beginning, or masked: what is indexed of earlier rounds counts only behind
-- what is derived in this one.
ALTER TABLE streams ADD COLUMN round bigint NOT NULL DEFAULT 0;

CREATE TABLE gram_segments (
  owner  bigint NOT NULL,
  id     bigint NOT NULL,
  level  bigint NOT NULL,                            -- by size; -1: being made, -2: not read any more
  docs   bigint NOT NULL,
  newest bigint NOT NULL,                            -- time of the newest line, and of the oldest
  oldest bigint NOT NULL,
  bytes  bigint NOT NULL,
  until  bigint NOT NULL,                            -- being made: who makes it is alive until then
  data   bytea NOT NULL,                             -- pages of a small segment; larger ones have gram_pages
  PRIMARY KEY (owner, id)
);
ALTER TABLE gram_segments ALTER data SET STORAGE EXTERNAL;

CREATE TABLE gram_pages (
  owner   bigint NOT NULL,
  segment bigint NOT NULL,
  part    bigint NOT NULL,                           -- 0: docs, first is a number; 1: grams, first is one
  first   bigint NOT NULL,
  data    bytea NOT NULL,
  PRIMARY KEY (owner, segment, part, first)
);
ALTER TABLE gram_pages ALTER data SET STORAGE EXTERNAL;

-- What of streams must not remain in segments: docs of rounds below one.
CREATE TABLE gram_purges (
  owner  bigint NOT NULL,
  stream bigint NOT NULL,
  round  bigint NOT NULL,
  PRIMARY KEY (owner, stream)
);

-- +goose Down
DROP TABLE gram_segments, gram_pages, gram_purges;
ALTER TABLE streams DROP COLUMN round;
CREATE TABLE texts (
  stream     bigint NOT NULL,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  line       bigint NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  time       bigint NOT NULL,
  text       text COLLATE "C" NOT NULL,
  indexed    text NOT NULL,
  PRIMARY KEY (stream, epoch, generation, line, kind)
);
CREATE INDEX texts_time ON texts (time, stream, epoch, generation, line, kind);
