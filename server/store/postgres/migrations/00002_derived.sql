-- +goose Up

-- All in this file can be made again from lines.

-- A stream lags while version, which each batch raises, is above derived. redo: lines came behind what is derived.
ALTER TABLE streams
  ADD COLUMN version bigint NOT NULL DEFAULT 1,
  ADD COLUMN derived bigint NOT NULL DEFAULT 0,
  ADD COLUMN redo    boolean NOT NULL DEFAULT false,
  ADD COLUMN leased  bigint NOT NULL DEFAULT 0;      -- until then somebody derives it
CREATE INDEX streams_lagging ON streams (last_received) WHERE version > derived;
CREATE INDEX streams_parent ON streams (hashtextextended(parent, 0), owner) WHERE parent <> '';

-- How far each stream is derived.
CREATE TABLE folds (
  stream     bigint PRIMARY KEY,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  line       bigint NOT NULL,
  format     bigint NOT NULL,
  state      bytea NOT NULL
);

CREATE TABLE facts (
  stream       bigint PRIMARY KEY,
  title        text COLLATE "C" NOT NULL,
  first_prompt text COLLATE "C" NOT NULL,
  folded       text COLLATE "C" NOT NULL,            -- both, in lower case
  model        text COLLATE "C" NOT NULL,
  models       text COLLATE "C" NOT NULL,            -- a newline before each and behind the last
  branch       text COLLATE "C" NOT NULL,
  version      text COLLATE "C" NOT NULL,
  started      bigint NOT NULL,
  ended        bigint NOT NULL,
  prompts      bigint NOT NULL,
  messages     bigint NOT NULL,
  tools        bigint NOT NULL,
  errors       bigint NOT NULL,
  compactions  bigint NOT NULL,
  context      bigint NOT NULL,
  "window"     bigint NOT NULL,
  compact_at   bigint NOT NULL,
  lines        bigint NOT NULL
);

-- Each stream's copy of an answer; of all copies that an owner has, one is counted. Copies of one answer are in
-- streams of one owner: this table is spread by owner.
CREATE TABLE answers (
  owner          bigint NOT NULL,
  key            text COLLATE "C" NOT NULL,
  stream         bigint NOT NULL,
  counted        boolean NOT NULL,
  sidechain      boolean NOT NULL,
  model          text COLLATE "C" NOT NULL,
  time           bigint NOT NULL,
  input          bigint NOT NULL,
  output         bigint NOT NULL,
  cache_read     bigint NOT NULL,
  cache_write_5m bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  PRIMARY KEY (owner, key, stream)
);
CREATE INDEX answers_stream ON answers (stream, counted);

CREATE TABLE drops (
  stream     bigint NOT NULL,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  first_line bigint NOT NULL,
  last_line  bigint NOT NULL,
  lines      bigint NOT NULL,                        -- 0: none, but looked at
  PRIMARY KEY (stream, epoch, generation)
);

-- indexed is the text as it is searched: folded, characters of scripts with short words set apart. Which index it
-- has depends on what the database allows, and is seen to when a server starts.
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
) PARTITION BY HASH (stream);
CREATE INDEX texts_time ON texts (time, stream, epoch, generation, line, kind);

-- +goose StatementBegin
DO $$
DECLARE
  fast boolean := EXISTS (SELECT FROM pg_settings
    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals));
BEGIN
  FOR i IN 0..15 LOOP
    EXECUTE format('CREATE TABLE texts_%s PARTITION OF texts FOR VALUES WITH (MODULUS 16, REMAINDER %s)', i, i);
    IF fast THEN
      EXECUTE format('ALTER TABLE texts_%s ALTER text SET COMPRESSION lz4, ALTER indexed SET COMPRESSION lz4', i);
    END IF;
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE texts, drops, answers, facts, folds;
DROP INDEX streams_parent, streams_lagging;
ALTER TABLE streams DROP COLUMN version, DROP COLUMN derived, DROP COLUMN redo, DROP COLUMN leased;
