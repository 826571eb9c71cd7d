-- +goose Up
-- beside: yes

-- Lines that a rule of retention removed: they are neither sent nor stored again, and digests go on over them.
CREATE TABLE retired (
  owner      bigint NOT NULL,
  stream     bigint NOT NULL,
  epoch      bigint NOT NULL,
  generation bigint NOT NULL,
  first      bigint NOT NULL,                  -- line
  last       bigint NOT NULL,                  -- line
  lines      bigint NOT NULL,
  raw_bytes  bigint NOT NULL,                  -- without newlines
  at         bigint NOT NULL,
  header     bytea NOT NULL,                 -- what the lines were, as that of a block
  hashes     bytea NOT NULL,                 -- sha256 of each line and a newline
  before     bytea NOT NULL,                 -- sha256 of the view up to the first; empty: unknown
  state      bytea NOT NULL,                 -- of the hash behind the last; empty: unknown
  PRIMARY KEY (owner, stream, epoch, generation, first)
);

-- Streams of which a rule removed everything that was stored at that time.
CREATE TABLE retired_streams (
  owner  bigint NOT NULL,
  stream bigint NOT NULL,
  at     bigint NOT NULL,
  says   text COLLATE "C" NOT NULL,                     -- the rule, in words
  PRIMARY KEY (owner, stream)
);

-- Files whose contents a rule removed.
CREATE TABLE retired_files (
  owner bigint NOT NULL,
  blob  bigint NOT NULL,
  at    bigint NOT NULL,
  PRIMARY KEY (owner, blob)
);

-- What was applied to which transcript.
CREATE TABLE retention_log (
  owner       bigint NOT NULL,
  run         bigint NOT NULL,                 -- when the application began
  stream      bigint NOT NULL,
  rule        bigint NOT NULL,
  session_id  text COLLATE "C" NOT NULL,
  machine     text COLLATE "C" NOT NULL,
  asked_by    text COLLATE "C" NOT NULL,
  says        text COLLATE "C" NOT NULL,
  action      text COLLATE "C" NOT NULL,
  at          bigint NOT NULL,                 -- of the last step
  generations bigint NOT NULL,
  lines       bigint NOT NULL,
  bytes       bigint NOT NULL,
  files       bigint NOT NULL,
  PRIMARY KEY (owner, run, stream, rule)
);
CREATE INDEX retention_log_at ON retention_log (owner, at);

CREATE TABLE retention_rules (
  id           bigint PRIMARY KEY,
  what         text COLLATE "C" NOT NULL,               -- generations, sessions
  action       text COLLATE "C" NOT NULL,               -- drop, cold
  age          bigint NOT NULL,                -- microseconds; 0 any
  above        bigint NOT NULL,                -- bytes; 0 all
  user_id      bigint NOT NULL,                -- 0 everybody
  project      text COLLATE "C" NOT NULL,               -- '' all
  checkpoints  bigint NOT NULL,                -- 1: sessions with checkpoints too
  usage        bigint NOT NULL,                -- 1: sums lose what was used
  asked_by     text COLLATE "C" NOT NULL,
  at           bigint NOT NULL
);

-- What no rule touches. An empty value means all.
CREATE TABLE retention_holds (
  id         bigint PRIMARY KEY,
  user_id    bigint NOT NULL,
  project    text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  asked_by   text COLLATE "C" NOT NULL,
  why        text COLLATE "C" NOT NULL,
  at         bigint NOT NULL
);

-- +goose Down
DROP TABLE retention_holds;
DROP TABLE retention_rules;
DROP TABLE retention_log;
DROP TABLE retired_files;
DROP TABLE retired_streams;
DROP TABLE retired;
