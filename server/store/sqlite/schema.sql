-- The schema of an SQLite store. Until version 1.0 it is edited in place: a database that another text made is refused.
-- Times are Unix microseconds; 0 is never. Keys are PostgreSQL's: the owner first, and names as their sha256.

-- Which store this is: a restored backup gets another id. schema is what sqlstore.SchemaSum says of this text.
CREATE TABLE store_identity (
  id TEXT NOT NULL, schema TEXT NOT NULL DEFAULT '',
  secret TEXT NOT NULL -- hashes of lines are made with it
);
INSERT INTO store_identity (id, secret) VALUES (lower(hex(randomblob(16))), lower(hex(randomblob(32))));

-- People

-- Who ships and reads.
CREATE TABLE users (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL,                     -- owner, member, viewer
  created INTEGER NOT NULL, disabled INTEGER NOT NULL DEFAULT 0,
  quota_bytes INTEGER NOT NULL DEFAULT 0, -- 0 is the server's own limit, -1 none
  quota_sessions INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE keys (
  id INTEGER PRIMARY KEY, user INTEGER NOT NULL DEFAULT 1, name TEXT NOT NULL UNIQUE, hash BLOB NOT NULL UNIQUE,
  created INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0, revoked INTEGER NOT NULL DEFAULT 0,
  made_by INTEGER NOT NULL DEFAULT 0, -- key; 0: none
  chain INTEGER NOT NULL DEFAULT 0    -- the first key that it was rotated from; 0: itself
);

-- Which key gave a user rights, and what the user was before.
CREATE TABLE grants (
  key INTEGER NOT NULL, user INTEGER NOT NULL, role TEXT NOT NULL,
  disabled INTEGER NOT NULL, -- as of users; '': the key made the user
  given INTEGER NOT NULL, PRIMARY KEY (key, user)
) WITHOUT ROWID;

CREATE TABLE shares (
  with_user INTEGER NOT NULL, owner INTEGER NOT NULL, project_key BLOB NOT NULL, project_hash TEXT NOT NULL,
  project TEXT NOT NULL, created INTEGER NOT NULL,
  documents INTEGER NOT NULL DEFAULT 0, -- 1: linked documents too
  made_by INTEGER NOT NULL, PRIMARY KEY (with_user, owner, project_key)
) WITHOUT ROWID;

CREATE TABLE logins (
  token BLOB PRIMARY KEY, -- sha256, as of tickets
  user INTEGER NOT NULL, key INTEGER NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE tickets (
  ticket BLOB PRIMARY KEY, user INTEGER NOT NULL, key INTEGER NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;

-- What users filter by, kept under a name.
CREATE TABLE saved_views (
  owner INTEGER NOT NULL, name TEXT NOT NULL,
  page TEXT NOT NULL,  -- whose filters they are
  query TEXT NOT NULL, -- of its address
  updated INTEGER NOT NULL, PRIMARY KEY (owner, name)
) WITHOUT ROWID;

-- Which projects of an owner are one: clones of a repository. Nobody's rights depend on it.
CREATE TABLE repositories (
  owner INTEGER NOT NULL, project_hash TEXT NOT NULL, repository TEXT NOT NULL, PRIMARY KEY (owner, project_hash)
) WITHOUT ROWID;

-- Streams and their lines

CREATE TABLE streams (
  id INTEGER PRIMARY KEY,
  owner INTEGER NOT NULL,             -- users.id; 0 is nobody's
  session_key BLOB NOT NULL,          -- sha256 of session_id
  machine_key BLOB NOT NULL, session_id TEXT NOT NULL,
  machine TEXT NOT NULL,              -- '' for bare clients
  project_hash TEXT NOT NULL, host TEXT NOT NULL, project TEXT NOT NULL, cwd TEXT NOT NULL, path TEXT NOT NULL,
  parent TEXT NOT NULL, first_received INTEGER NOT NULL, last_received INTEGER NOT NULL,
  ended INTEGER NOT NULL DEFAULT 0,   -- derived: time of the newest record
  -- What lists go by: an import brings what was written long ago, the newest first. No clock is believed beyond arrival.
  active INTEGER GENERATED ALWAYS AS (CASE WHEN ended > 0 AND ended < last_received THEN ended ELSE last_received END)
    STORED,
  -- A stream lags while version, which each batch raises, is above derived. derived is above 0 once a stream was wholly
  -- derived, and below while all of it is derived again. redo: lines came behind what is derived.
  version INTEGER NOT NULL DEFAULT 1, derived INTEGER NOT NULL DEFAULT 0, redo INTEGER NOT NULL DEFAULT 0,
  -- Until then somebody derives it. It is also when a stream was derived last: of several that lag, the one that waits
  -- longest comes first.
  leased INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0, -- count of the ledger at the last write
  masked INTEGER NOT NULL DEFAULT 0,  -- how often something of the stream was masked
  cooled INTEGER NOT NULL DEFAULT -1, -- the version of which nothing is left to move to cold storage
  retired INTEGER NOT NULL DEFAULT 0, -- when a rule removed everything that was stored then
  retired_by TEXT NOT NULL DEFAULT '', -- that rule, in words
  -- Bytes of a stream's lines, of those they replaced, and of its checkpoints. Triggers keep it, so that it is right
  -- whatever changes those. Files count for their user.
  stored INTEGER NOT NULL DEFAULT 0,
  -- How often a stream was derived from its beginning, or masked: what is indexed of earlier rounds counts only behind
  -- what is derived in this one.
  round INTEGER NOT NULL DEFAULT 0,
  -- Which version of the stream is in project_sums, -1 for one to sum up again, and what of it. Most writes find -1 and
  -- leave it, and the index, as they are.
  summed INTEGER NOT NULL DEFAULT -1, sum_place BLOB NOT NULL DEFAULT x'', sum_main INTEGER NOT NULL DEFAULT 0,
  sum_bytes INTEGER NOT NULL DEFAULT 0, UNIQUE (owner, session_key, machine_key)
);
CREATE INDEX streams_recent ON streams (active, id);
CREATE INDEX streams_session ON streams (session_key);
CREATE INDEX streams_parent ON streams (substr(parent, 1, 200), owner) WHERE parent <> '';
CREATE INDEX streams_lagging_live ON streams (leased) WHERE version > derived AND derived > 0;
CREATE INDEX streams_lagging_whole ON streams (derived, last_received) WHERE version > derived AND derived <= 0;
CREATE INDEX streams_owner ON streams (owner, active, id);
CREATE INDEX streams_project ON streams (project_hash);
CREATE INDEX streams_called ON streams (substr(project, 1, 200));
CREATE INDEX streams_unsummed ON streams (owner, id) WHERE summed < 0;

CREATE TABLE epochs (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL,
  rank INTEGER NOT NULL, -- by first arrival, from 1; the highest is in front
  name TEXT NOT NULL,    -- '' for bare clients
  name_key BLOB NOT NULL, first_seen INTEGER NOT NULL, PRIMARY KEY (owner, stream, rank),
  UNIQUE (owner, stream, name_key)
) WITHOUT ROWID;

CREATE TABLE generations (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  rewound_to INTEGER NOT NULL,
  end_line INTEGER NOT NULL,    -- the highest any request named
  end_offset INTEGER NOT NULL,  -- the highest any request named; 0 unknown
  eof_newline INTEGER NOT NULL, -- of the request with that offset
  bytes INTEGER NOT NULL,       -- stored, newlines counted
  stored_to INTEGER NOT NULL,   -- one past the last line that is stored, or was retired
  first_seen INTEGER NOT NULL, PRIMARY KEY (owner, stream, epoch, generation)
) WITHOUT ROWID;

-- Clustered in reading order. kind stands before raw so that counting never touches overflow pages.
CREATE TABLE lines (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  line INTEGER NOT NULL, received INTEGER NOT NULL,
  kind INTEGER NOT NULL, -- 0 object, 1 opaque, 2 oversize note
  raw BLOB NOT NULL, PRIMARY KEY (owner, stream, epoch, generation, line)
) WITHOUT ROWID;

-- Lines of a generation, packed: see package block. Those of a generation do not overlap. A row of lines is in force
-- where a block has the line too. What is large stands last, so that looking at the rest reads no page of it.
CREATE TABLE blocks (
  id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL,
  generation INTEGER NOT NULL, first INTEGER NOT NULL,
  last INTEGER NOT NULL,      -- line, of the block too
  lines INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL, -- without newlines
  sha256 BLOB NOT NULL,       -- of all of the block but of what comes next: which object has data, and where in it
  object TEXT NOT NULL DEFAULT '', place INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0,
  header BLOB NOT NULL, data BLOB NOT NULL, UNIQUE (owner, stream, epoch, generation, first)
);

-- Bytes of a line that later ones with the same key replaced. Never deleted but by forgetting.
CREATE TABLE superseded (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  line INTEGER NOT NULL, received INTEGER NOT NULL, replaced INTEGER NOT NULL, kind INTEGER NOT NULL,
  raw BLOB NOT NULL
);
CREATE INDEX superseded_line ON superseded (owner, stream, epoch, generation, line);

-- Sessions that are not to be stored again, and with them their agents.
CREATE TABLE forgotten (
  owner INTEGER NOT NULL, session_key BLOB NOT NULL, session_id TEXT NOT NULL, at INTEGER NOT NULL,
  lines INTEGER NOT NULL, PRIMARY KEY (owner, session_key)
) WITHOUT ROWID;

-- How many writes came from a machine of a user, and which incarnation of its daemon sent the last one.
CREATE TABLE ledgers (
  owner INTEGER NOT NULL, machine_key BLOB NOT NULL, count INTEGER NOT NULL,
  writer TEXT NOT NULL, -- '' for clients that name none
  PRIMARY KEY (owner, machine_key)
) WITHOUT ROWID;

-- Incarnations from which another one took over, the latest of each machine.
CREATE TABLE replaced_writers (
  owner INTEGER NOT NULL, machine_key BLOB NOT NULL, writer TEXT NOT NULL,
  count INTEGER NOT NULL, -- of the ledger when it was replaced
  PRIMARY KEY (owner, machine_key, writer)
) WITHOUT ROWID;

-- Masking

-- Lines that the server masked by itself. When they come again, they are stored with the same tokens.
CREATE TABLE masked_lines (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  line INTEGER NOT NULL, PRIMARY KEY (owner, stream, line, epoch, generation)
) WITHOUT ROWID;

-- How much was masked, by whom.
CREATE TABLE maskings (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL,
  asked_by INTEGER NOT NULL, -- users.id; 0: the server
  at INTEGER NOT NULL,       -- the last time
  lines INTEGER NOT NULL, checkpoints INTEGER NOT NULL, files INTEGER NOT NULL, PRIMARY KEY (owner, stream, asked_by)
) WITHOUT ROWID;

-- Fills free pages, to overwrite what was masked.
CREATE TABLE scrub_pages (zeros BLOB NOT NULL);

-- What is derived from lines, and can be made again from them

-- How far each stream is derived.
CREATE TABLE folds (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  line INTEGER NOT NULL, format INTEGER NOT NULL, state BLOB NOT NULL,
  state_line INTEGER NOT NULL DEFAULT -1, -- up to which line state goes; -1: as far as the stream is derived
  PRIMARY KEY (owner, stream)
);

CREATE TABLE facts (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, title TEXT NOT NULL, first_prompt TEXT NOT NULL,
  folded TEXT NOT NULL, -- both, in lower case
  model TEXT NOT NULL,
  models TEXT NOT NULL, -- a newline before each and behind the last
  branch TEXT NOT NULL, version TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL,
  prompts INTEGER NOT NULL, messages INTEGER NOT NULL, tools INTEGER NOT NULL, errors INTEGER NOT NULL,
  compactions INTEGER NOT NULL, context INTEGER NOT NULL, window INTEGER NOT NULL, compact_at INTEGER NOT NULL,
  lines INTEGER NOT NULL,
  origin TEXT NOT NULL, -- the session and the id of its first record: copies of a session have the same; '' unknown
  copy INTEGER NOT NULL, -- 1: its name is not that of its records' session
  PRIMARY KEY (owner, stream)
);
CREATE INDEX facts_origin ON facts (owner, origin) WHERE origin <> '';

-- What happened in the newest view of a stream, in the order of its lines.
CREATE TABLE moments (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, line INTEGER NOT NULL,
  part INTEGER NOT NULL, -- of several on one line
  kind TEXT NOT NULL,
  data BLOB NOT NULL,    -- JSON
  PRIMARY KEY (owner, stream, line, part)
) WITHOUT ROWID;

-- What edits of files added, of all generations: see package provenance. Texts are only in lines.
CREATE TABLE edits (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  line INTEGER NOT NULL, part INTEGER NOT NULL,
  name INTEGER NOT NULL, -- keyed hash of the file's name
  at INTEGER NOT NULL,
  data BLOB NOT NULL,    -- path, prompt, keyed hashes of lines
  PRIMARY KEY (owner, stream, epoch, generation, line, part)
) WITHOUT ROWID;
CREATE INDEX edits_name ON edits (name, owner, at);

-- How much of commits sessions wrote, as somebody asked: each for itself, whatever others wrote of the same lines.
CREATE TABLE commits (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, name TEXT NOT NULL, at INTEGER NOT NULL, added INTEGER NOT NULL,
  lines INTEGER NOT NULL, PRIMARY KEY (owner, stream, name)
) WITHOUT ROWID;

-- Lines that a rewrite of their file dropped.
CREATE TABLE drops (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  first_line INTEGER NOT NULL, last_line INTEGER NOT NULL,
  lines INTEGER NOT NULL, -- 0: none, but looked at
  PRIMARY KEY (owner, stream, epoch, generation)
) WITHOUT ROWID;
CREATE INDEX drops_owner ON drops (owner, stream) WHERE lines > 0;

-- An index of texts by owner, of which only the program knows the format; see package search. Texts themselves are
-- read from lines.
CREATE TABLE gram_segments (
  owner INTEGER NOT NULL, id INTEGER NOT NULL,
  level INTEGER NOT NULL,  -- by size; -1: being made, -2: not read any more
  docs INTEGER NOT NULL,
  newest INTEGER NOT NULL, -- time of the newest line, and of the oldest
  oldest INTEGER NOT NULL, bytes INTEGER NOT NULL,
  until INTEGER NOT NULL,  -- being made: who makes it is alive until then
  data BLOB NOT NULL,      -- pages of a small segment; larger ones have gram_pages
  UNIQUE (owner, id)
);
-- Segments of all owners from the newest on: a search by somebody who sees everything reads as many as it shows of.
CREATE INDEX gram_segments_newest ON gram_segments (newest DESC, owner, id) WHERE level >= 0;

CREATE TABLE gram_pages (
  owner INTEGER NOT NULL, segment INTEGER NOT NULL,
  part INTEGER NOT NULL, -- 0: docs, first is a number; 1: grams, first is one
  first INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (owner, segment, part, first)
);

-- What of streams must not remain in segments: docs of rounds below one.
CREATE TABLE gram_purges (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, round INTEGER NOT NULL, PRIMARY KEY (owner, stream)
) WITHOUT ROWID;

-- Usage

-- Each stream's copy of an answer; of all copies that an owner has, one is counted. Answers of a stream stand together:
-- what is derived of it changes one page or two, and not one for each answer.
CREATE TABLE answers (
  owner INTEGER NOT NULL, key TEXT NOT NULL, stream INTEGER NOT NULL, counted INTEGER NOT NULL,
  sidechain INTEGER NOT NULL, model TEXT NOT NULL, time INTEGER NOT NULL, input INTEGER NOT NULL,
  output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL, searches INTEGER NOT NULL, PRIMARY KEY (owner, stream, key)
) WITHOUT ROWID;
CREATE INDEX answers_key ON answers (owner, key);
-- For the half hours at both ends of a question.
CREATE INDEX answers_time ON answers (owner, time) WHERE counted;

-- Sums of the answers that count, by half hours since 1970, so that days and hours of nearly every zone are made of
-- them. Triggers keep them, so that they are right whatever changes answers.
CREATE TABLE usage_sums (
  owner INTEGER NOT NULL, slot INTEGER NOT NULL, project_hash TEXT NOT NULL, project TEXT NOT NULL,
  machine TEXT NOT NULL,
  model TEXT NOT NULL,   -- its first 200 characters
  long INTEGER NOT NULL, -- requests above 200 000 tokens
  answers INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, searches INTEGER NOT NULL,
  -- What of the row is in the totals; total is 1 while that is all of it.
  total INTEGER NOT NULL DEFAULT 0, t_answers INTEGER NOT NULL DEFAULT 0, t_input INTEGER NOT NULL DEFAULT 0,
  t_output INTEGER NOT NULL DEFAULT 0, t_cache_read INTEGER NOT NULL DEFAULT 0,
  t_cache_write_5m INTEGER NOT NULL DEFAULT 0, t_cache_write_1h INTEGER NOT NULL DEFAULT 0,
  t_searches INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, slot, project_hash, project, machine, model, long)
) WITHOUT ROWID;
CREATE INDEX usage_sums_untotalled ON usage_sums (owner, slot) WHERE total = 0;

-- Sums of usage_sums over all owners.
CREATE TABLE usage_totals (
  slot INTEGER NOT NULL, model TEXT NOT NULL, long INTEGER NOT NULL, answers INTEGER NOT NULL,
  input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL, searches INTEGER NOT NULL, PRIMARY KEY (slot, model, long)
) WITHOUT ROWID;

-- Who changes usage_sums, inserts here: n is 1 for an answer that counts from now on, -1 for one that does no more.
CREATE VIEW usage_changes AS SELECT 0 AS n, '' AS project_hash, '' AS project, '' AS machine, owner, time, model, input,
  output, cache_read, cache_write_5m, cache_write_1h, searches FROM answers WHERE 0;
CREATE TRIGGER usage_changes INSTEAD OF INSERT ON usage_changes BEGIN
  INSERT INTO usage_sums (owner, slot, project_hash, project, machine, model, long, answers, input, output, cache_read,
    cache_write_5m, cache_write_1h, searches)
  VALUES (new.owner, (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000, new.project_hash,
    new.project, new.machine, substr(new.model, 1, 200),
    new.input + new.cache_read + new.cache_write_5m + new.cache_write_1h > 200000,
    new.n, new.n * new.input, new.n * new.output, new.n * new.cache_read, new.n * new.cache_write_5m,
    new.n * new.cache_write_1h, new.n * new.searches)
  ON CONFLICT DO UPDATE SET answers = answers + excluded.answers, input = input + excluded.input,
    output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
    cache_write_5m = cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = cache_write_1h + excluded.cache_write_1h, searches = searches + excluded.searches, total = 0;
  DELETE FROM usage_sums WHERE new.n < 0 AND answers = 0 AND t_answers = 0 AND owner = new.owner
    AND slot = (new.time - (new.time % 1800000000 + 1800000000) % 1800000000) / 1800000000
    AND project_hash = new.project_hash AND project = new.project AND machine = new.machine;
END;
CREATE TRIGGER usage_added AFTER INSERT ON answers WHEN new.counted BEGIN
  INSERT INTO usage_changes SELECT 1, project_hash, project, machine, new.owner, new.time, new.model, new.input,
    new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h, new.searches FROM streams WHERE id = new.stream;
END;
CREATE TRIGGER usage_removed AFTER DELETE ON answers WHEN old.counted BEGIN
  INSERT INTO usage_changes SELECT -1, project_hash, project, machine, old.owner, old.time, old.model, old.input,
    old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h, old.searches FROM streams WHERE id = old.stream;
END;
CREATE TRIGGER usage_changed AFTER UPDATE ON answers WHEN (old.counted OR new.counted) AND (old.counted, old.time,
  old.model, old.input, old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h, old.searches) <> (new.counted,
  new.time, new.model, new.input, new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h, new.searches) BEGIN
  INSERT INTO usage_changes SELECT -1, project_hash, project, machine, old.owner, old.time, old.model, old.input,
    old.output, old.cache_read, old.cache_write_5m, old.cache_write_1h, old.searches FROM streams
    WHERE id = old.stream AND old.counted;
  INSERT INTO usage_changes SELECT 1, project_hash, project, machine, new.owner, new.time, new.model, new.input,
    new.output, new.cache_read, new.cache_write_5m, new.cache_write_1h, new.searches FROM streams
    WHERE id = new.stream AND new.counted;
END;
CREATE TRIGGER usage_moved AFTER UPDATE OF project_hash, project ON streams
WHEN old.project_hash <> new.project_hash OR old.project <> new.project BEGIN
  INSERT INTO usage_changes SELECT -1, old.project_hash, old.project, old.machine, owner, time, model, input, output,
    cache_read, cache_write_5m, cache_write_1h, searches FROM answers
    WHERE owner = old.owner AND stream = old.id AND counted;
  INSERT INTO usage_changes SELECT 1, new.project_hash, new.project, new.machine, owner, time, model, input, output,
    cache_read, cache_write_5m, cache_write_1h, searches FROM answers
    WHERE owner = new.owner AND stream = new.id AND counted;
END;

-- Projects

-- Sums of streams by owner, project and machine, see package sums. A row has its streams as they were at the version
-- that they were summed up at.
CREATE TABLE project_sums (
  owner INTEGER NOT NULL,
  place BLOB NOT NULL,     -- hash of project_hash and machine
  project_hash TEXT NOT NULL, machine TEXT NOT NULL,
  newest INTEGER NOT NULL, -- stream; 0: it was forgotten
  last INTEGER NOT NULL,   -- its time, and what it is called
  project TEXT NOT NULL, cwd TEXT NOT NULL, host TEXT NOT NULL, sessions INTEGER NOT NULL, bytes INTEGER NOT NULL,
  streams INTEGER NOT NULL, PRIMARY KEY (owner, place)
) WITHOUT ROWID;
CREATE INDEX project_sums_last ON project_sums (last DESC, owner, place);
CREATE INDEX project_sums_owner ON project_sums (owner, last DESC, place);
CREATE INDEX project_sums_headless ON project_sums (owner, place) WHERE newest = 0;

CREATE TRIGGER streams_unsum AFTER UPDATE OF version, project_hash, project, cwd, host, parent, ended ON streams
WHEN new.summed >= 0 AND (old.version <> new.version OR old.project_hash <> new.project_hash
  OR old.project <> new.project OR old.cwd <> new.cwd OR old.host <> new.host OR old.parent <> new.parent
  OR old.ended <> new.ended) BEGIN
  UPDATE streams SET summed = -1 WHERE id = new.id;
END;
-- Nothing remains of what a forgotten stream was called.
CREATE TRIGGER project_sums_forgotten AFTER DELETE ON streams WHEN old.sum_place <> x'' BEGIN
  UPDATE project_sums SET sessions = sessions - old.sum_main, bytes = bytes - old.sum_bytes, streams = streams - 1,
    project = CASE newest WHEN old.id THEN '' ELSE project END, cwd = CASE newest WHEN old.id THEN '' ELSE cwd END,
    host = CASE newest WHEN old.id THEN '' ELSE host END, newest = CASE newest WHEN old.id THEN 0 ELSE newest END
  WHERE owner = old.owner AND place = old.sum_place;
  DELETE FROM project_sums WHERE owner = old.owner AND place = old.sum_place AND streams = 0;
END;

-- What daemons send beside lines; none of it can be made again from lines

-- Epochs as artifacts know them: they may come before the first line. rank is by first arrival, from 1.
CREATE TABLE artifact_epochs (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, rank INTEGER NOT NULL, name TEXT NOT NULL,
  name_key BLOB NOT NULL, PRIMARY KEY (owner, stream, rank), UNIQUE (owner, stream, name_key)
);

CREATE TABLE checkpoints (
  num INTEGER PRIMARY KEY, owner INTEGER NOT NULL, stream INTEGER NOT NULL, id TEXT NOT NULL,
  rank INTEGER NOT NULL,      -- artifact_epochs.rank of the one who said it last
  port_id TEXT NOT NULL, tokens_used INTEGER NOT NULL, token_budget INTEGER NOT NULL, cause TEXT NOT NULL,
  context_hash TEXT NOT NULL, summary TEXT NOT NULL,
  active_files TEXT NOT NULL, -- a JSON list
  created INTEGER NOT NULL, generation INTEGER NOT NULL,
  line INTEGER NOT NULL,      -- -1 unknown
  UNIQUE (owner, stream, id)
);
CREATE INDEX checkpoints_id ON checkpoints (id);
CREATE INDEX checkpoints_created ON checkpoints (created, num);

CREATE TABLE documents (
  id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, stream INTEGER NOT NULL, path_key BLOB NOT NULL, path TEXT NOT NULL,
  linked INTEGER NOT NULL, added_at INTEGER NOT NULL, added_by TEXT NOT NULL, unlinked_at INTEGER NOT NULL,
  -- Of the event that decided about linked: later ones in this order change it.
  link_rank INTEGER NOT NULL, link_version INTEGER NOT NULL, link_at INTEGER NOT NULL, UNIQUE (owner, stream, path_key)
);

-- Never changed. Of several with one rank and n the one with the highest id shows.
CREATE TABLE document_versions (
  id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, document INTEGER NOT NULL,
  rank INTEGER NOT NULL, -- artifact_epochs.rank
  n INTEGER NOT NULL, change TEXT NOT NULL, author TEXT NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL,
  sha256 BLOB NOT NULL,  -- empty: no content
  too_large INTEGER NOT NULL,
  line INTEGER NOT NULL, -- -1 none
  UNIQUE (owner, document, rank, n, change, sha256)
);
CREATE INDEX document_versions_sha256 ON document_versions (sha256);

CREATE TABLE link_requests (
  num INTEGER PRIMARY KEY, owner INTEGER NOT NULL, id TEXT NOT NULL, stream INTEGER NOT NULL, path TEXT NOT NULL,
  link INTEGER NOT NULL, asked_by INTEGER NOT NULL, asked INTEGER NOT NULL,
  state TEXT NOT NULL, -- waiting, done, refused
  reason TEXT NOT NULL, answered INTEGER NOT NULL, UNIQUE (owner, id)
);
CREATE INDEX link_requests_stream ON link_requests (stream, num);
CREATE INDEX link_requests_waiting ON link_requests (stream) WHERE state = 'waiting';

-- Contents, one of each for an owner. They go when nothing names them any more.
CREATE TABLE blobs (
  id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, sha256 BLOB NOT NULL, size INTEGER NOT NULL,
  have INTEGER NOT NULL,              -- bytes that have come
  stored INTEGER NOT NULL,            -- when it was whole; 0: it is being uploaded
  touched INTEGER NOT NULL,
  tries INTEGER NOT NULL,             -- how often it was begun again
  retired INTEGER NOT NULL DEFAULT 0, -- when a rule removed the content
  UNIQUE (owner, sha256)
);
CREATE INDEX blobs_unfinished ON blobs (owner, touched) WHERE stored = 0;

CREATE TABLE blob_chunks (
  owner INTEGER NOT NULL, blob INTEGER NOT NULL,
  place INTEGER NOT NULL,         -- offset of its first byte
  object TEXT NOT NULL DEFAULT '', -- that has data
  data BLOB NOT NULL, PRIMARY KEY (owner, blob, place)
);

-- Files of sessions.
CREATE TABLE blob_refs (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, name_key BLOB NOT NULL, name TEXT NOT NULL,
  sha256 BLOB NOT NULL, media TEXT NOT NULL,
  conversational INTEGER NOT NULL, -- 1: of the conversation; 0: a document's
  received INTEGER NOT NULL, PRIMARY KEY (owner, stream, name_key, sha256)
);
CREATE INDEX blob_refs_sha256 ON blob_refs (sha256);

-- What triggers keep in streams.stored

CREATE TRIGGER stored_lines AFTER UPDATE OF bytes ON generations WHEN new.bytes <> old.bytes BEGIN
  UPDATE streams SET stored = stored + new.bytes - old.bytes WHERE id = new.stream;
  UPDATE streams SET summed = -1 WHERE new.bytes < old.bytes AND id = new.stream;
END;
CREATE TRIGGER stored_replaced AFTER INSERT ON superseded BEGIN
  UPDATE streams SET stored = stored + length(new.raw) + 1 WHERE id = new.stream;
END;
CREATE TRIGGER stored_replaced_gone AFTER DELETE ON superseded BEGIN
  UPDATE streams SET stored = stored - length(old.raw) - 1 WHERE id = old.stream;
END;
CREATE TRIGGER stored_checkpoint AFTER INSERT ON checkpoints BEGIN
  UPDATE streams SET stored = stored + length(CAST(new.summary AS BLOB)) + length(CAST(new.active_files AS BLOB))
  WHERE id = new.stream;
END;
CREATE TRIGGER stored_checkpoint_again AFTER UPDATE OF summary, active_files ON checkpoints BEGIN
  UPDATE streams SET stored = stored + length(CAST(new.summary AS BLOB)) + length(CAST(new.active_files AS BLOB))
    - length(CAST(old.summary AS BLOB)) - length(CAST(old.active_files AS BLOB))
  WHERE id = new.stream;
END;

-- What users keep about sessions

CREATE TABLE marks (
  owner INTEGER NOT NULL, reader INTEGER NOT NULL, stream INTEGER NOT NULL, star INTEGER NOT NULL, name TEXT NOT NULL,
  note TEXT NOT NULL,
  tags TEXT NOT NULL, -- each between line breaks
  updated INTEGER NOT NULL, PRIMARY KEY (owner, stream, reader)
) WITHOUT ROWID;
CREATE INDEX marks_reader ON marks (reader, stream);

-- Links with which anybody reads one session.
CREATE TABLE share_links (
  owner INTEGER NOT NULL,
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- of a link that is gone, never used again
  hash BLOB NOT NULL UNIQUE,            -- sha256 of the secret
  stream INTEGER NOT NULL, maker INTEGER NOT NULL,
  "key" INTEGER NOT NULL,               -- it was made with; 0: none
  created INTEGER NOT NULL, until INTEGER NOT NULL
);
CREATE INDEX share_links_stream ON share_links (owner, stream);

-- What is old

-- Where what is old is kept, outside of the database: see package cold. One row.
CREATE TABLE cold (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,   -- the folder of this database there
  place TEXT NOT NULL -- a URL; '' none
);
INSERT INTO cold (one, id, place) VALUES (1, lower(hex(randomblob(16))), '');

-- Objects of blocks have a stream and no blob, those of files a blob and no stream.
CREATE TABLE cold_objects (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, blob INTEGER NOT NULL, id TEXT NOT NULL, size INTEGER NOT NULL,
  sha256 BLOB NOT NULL,
  state INTEGER NOT NULL, -- 0 being written, 1 in use, 2 to be removed, once what is used of it is back
  at INTEGER NOT NULL, PRIMARY KEY (owner, stream, blob, id)
) WITHOUT ROWID;
CREATE INDEX cold_objects_pending ON cold_objects (owner, at) WHERE state <> 1;

-- Who does something that one process does at a time.
CREATE TABLE leases (
  name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL
) WITHOUT ROWID;

-- Lines that a rule of retention removed: they are neither sent nor stored again.
CREATE TABLE retired (
  owner INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL,
  first INTEGER NOT NULL, last INTEGER NOT NULL, lines INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL, -- without newlines
  at INTEGER NOT NULL,
  header BLOB NOT NULL,       -- what the lines were, as that of a block
  hashes BLOB NOT NULL,       -- sha256 of each line and a newline
  UNIQUE (owner, stream, epoch, generation, first)
);

-- What was applied to which transcript.
CREATE TABLE retention_log (
  owner INTEGER NOT NULL,
  run INTEGER NOT NULL, -- when the application began
  stream INTEGER NOT NULL, rule INTEGER NOT NULL, session_id TEXT NOT NULL, machine TEXT NOT NULL,
  asked_by TEXT NOT NULL, says TEXT NOT NULL, action TEXT NOT NULL,
  at INTEGER NOT NULL,  -- of the last step
  generations INTEGER NOT NULL, lines INTEGER NOT NULL, bytes INTEGER NOT NULL, files INTEGER NOT NULL,
  PRIMARY KEY (owner, run, stream, rule)
) WITHOUT ROWID;
CREATE INDEX retention_log_at ON retention_log (owner, at);

CREATE TABLE retention_rules (
  id INTEGER PRIMARY KEY,
  what TEXT NOT NULL,           -- generations, sessions
  action TEXT NOT NULL,         -- drop, cold
  age INTEGER NOT NULL,         -- microseconds; 0 any
  above INTEGER NOT NULL,       -- bytes; 0 all
  user_id INTEGER NOT NULL,     -- 0 everybody
  project TEXT NOT NULL,        -- '' all
  checkpoints INTEGER NOT NULL, -- 1: sessions with checkpoints too
  usage INTEGER NOT NULL,       -- 1: sums lose what was used
  asked_by TEXT NOT NULL, at INTEGER NOT NULL
);

-- What no rule touches. An empty value means all.
CREATE TABLE retention_holds (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, project TEXT NOT NULL, session_id TEXT NOT NULL,
  asked_by TEXT NOT NULL, why TEXT NOT NULL, at INTEGER NOT NULL
);
