-- +goose Up

-- The owner is first in every key of what is of a stream. The indexes are there already, see owners.go: nothing is read
-- or written but the catalog.
ALTER TABLE marks DROP CONSTRAINT marks_stream_fkey;
ALTER TABLE share_links DROP CONSTRAINT share_links_stream_fkey;
ALTER TABLE streams DROP CONSTRAINT streams_pkey, DROP CONSTRAINT streams_session_key_owner_machine_key_key,
  ADD CONSTRAINT streams_pkey PRIMARY KEY USING INDEX streams_owner_id,
  ADD CONSTRAINT streams_owner_session UNIQUE USING INDEX streams_owner_session;
ALTER TABLE epochs DROP CONSTRAINT epochs_pkey, DROP CONSTRAINT epochs_stream_name_key_key,
  ADD CONSTRAINT epochs_pkey PRIMARY KEY USING INDEX epochs_owner,
  ADD CONSTRAINT epochs_owner_name UNIQUE USING INDEX epochs_owner_name;
ALTER TABLE generations DROP CONSTRAINT generations_pkey,
  ADD CONSTRAINT generations_pkey PRIMARY KEY USING INDEX generations_owner;
ALTER TABLE lines DROP CONSTRAINT lines_pkey;
ALTER TABLE ONLY lines ADD CONSTRAINT lines_pkey PRIMARY KEY (owner, stream, epoch, generation, line);
-- +goose StatementBegin
DO $$ BEGIN
  FOR i IN 0..15 LOOP
    EXECUTE format('ALTER TABLE lines_%s ADD CONSTRAINT lines_%s_pkey PRIMARY KEY USING INDEX lines_%s_owner', i, i, i);
    EXECUTE format('ALTER INDEX lines_pkey ATTACH PARTITION lines_%s_pkey', i);
  END LOOP;
END $$;
-- +goose StatementEnd
DROP INDEX superseded_line;
ALTER INDEX superseded_owner RENAME TO superseded_line;
ALTER TABLE folds DROP CONSTRAINT folds_pkey, ADD CONSTRAINT folds_pkey PRIMARY KEY USING INDEX folds_owner;
ALTER TABLE facts DROP CONSTRAINT facts_pkey, ADD CONSTRAINT facts_pkey PRIMARY KEY USING INDEX facts_owner;
ALTER TABLE drops DROP CONSTRAINT drops_pkey, ADD CONSTRAINT drops_pkey PRIMARY KEY USING INDEX drops_owner;
ALTER TABLE moments DROP CONSTRAINT moments_pkey, ADD CONSTRAINT moments_pkey PRIMARY KEY USING INDEX moments_owner;
DROP INDEX answers_stream;
ALTER INDEX answers_owner_stream RENAME TO answers_stream;
ALTER TABLE masked_lines DROP CONSTRAINT masked_lines_pkey,
  ADD CONSTRAINT masked_lines_pkey PRIMARY KEY USING INDEX masked_lines_owner;
ALTER TABLE maskings DROP CONSTRAINT maskings_pkey, ADD CONSTRAINT maskings_pkey PRIMARY KEY USING INDEX maskings_owner;
ALTER TABLE artifact_epochs DROP CONSTRAINT paper_epochs_pkey, DROP CONSTRAINT paper_epochs_stream_name_key_key,
  ADD CONSTRAINT artifact_epochs_pkey PRIMARY KEY USING INDEX artifact_epochs_owner,
  ADD CONSTRAINT artifact_epochs_owner_name UNIQUE USING INDEX artifact_epochs_owner_name;
ALTER TABLE checkpoints DROP CONSTRAINT checkpoints_pkey, DROP CONSTRAINT checkpoints_stream_id_key,
  ADD CONSTRAINT checkpoints_pkey PRIMARY KEY USING INDEX checkpoints_owner,
  ADD CONSTRAINT checkpoints_owner_id UNIQUE USING INDEX checkpoints_owner_id;
ALTER TABLE documents DROP CONSTRAINT documents_pkey, DROP CONSTRAINT documents_stream_path_key_key,
  ADD CONSTRAINT documents_pkey PRIMARY KEY USING INDEX documents_owner,
  ADD CONSTRAINT documents_owner_path UNIQUE USING INDEX documents_owner_path;
ALTER TABLE document_versions DROP CONSTRAINT document_versions_pkey,
  DROP CONSTRAINT document_versions_document_rank_n_change_sha256_key,
  ADD CONSTRAINT document_versions_pkey PRIMARY KEY USING INDEX document_versions_owner,
  ADD CONSTRAINT document_versions_owner_n UNIQUE USING INDEX document_versions_owner_n;
ALTER TABLE blobs DROP CONSTRAINT blobs_pkey, ADD CONSTRAINT blobs_pkey PRIMARY KEY USING INDEX blobs_owner_id;
ALTER TABLE blob_chunks DROP CONSTRAINT blob_chunks_pkey,
  ADD CONSTRAINT blob_chunks_pkey PRIMARY KEY USING INDEX blob_chunks_owner;
ALTER TABLE blob_refs DROP CONSTRAINT blob_refs_pkey,
  ADD CONSTRAINT blob_refs_pkey PRIMARY KEY USING INDEX blob_refs_owner;
ALTER TABLE link_requests DROP CONSTRAINT wishes_pkey, DROP CONSTRAINT wishes_id_key,
  ADD CONSTRAINT link_requests_pkey PRIMARY KEY USING INDEX link_requests_owner,
  ADD CONSTRAINT link_requests_owner_id UNIQUE USING INDEX link_requests_owner_id;
ALTER TABLE marks DROP CONSTRAINT marks_pkey, ADD CONSTRAINT marks_pkey PRIMARY KEY USING INDEX marks_owner;
DROP INDEX marks_stream;
CREATE INDEX marks_reader ON marks (reader, stream);
ALTER TABLE marks ADD CONSTRAINT marks_stream_fkey FOREIGN KEY (owner, stream) REFERENCES streams (owner, id)
  ON DELETE CASCADE NOT VALID; -- what is there came from the key of before
ALTER TABLE share_links DROP CONSTRAINT share_links_pkey, DROP CONSTRAINT share_links_hash_key,
  ADD CONSTRAINT share_links_pkey PRIMARY KEY USING INDEX share_links_owner,
  ADD CONSTRAINT share_links_owner_hash UNIQUE USING INDEX share_links_owner_hash;
DROP INDEX share_links_stream;
CREATE INDEX share_links_stream ON share_links (owner, stream);
ALTER TABLE share_links ADD CONSTRAINT share_links_stream_fkey FOREIGN KEY (owner, stream) REFERENCES streams (owner, id)
  ON DELETE CASCADE NOT VALID;

-- Servers write the owner themselves.
-- +goose StatementBegin
DO $$ DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['epochs', 'generations', 'lines', 'superseded', 'folds', 'facts', 'drops', 'moments',
    'masked_lines', 'maskings', 'artifact_epochs', 'checkpoints', 'documents', 'blob_refs', 'link_requests', 'marks', 'share_links',
    'document_versions', 'blob_chunks'] LOOP
    EXECUTE format('DROP TRIGGER fill_owner ON %I', t);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN owner DROP DEFAULT', t);
  END LOOP;
END $$;
-- +goose StatementEnd
DROP FUNCTION fill_owner;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION stored_lines() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE streams SET stored = stored + NEW.bytes - OLD.bytes WHERE owner = NEW.owner AND id = NEW.stream;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION stored_replaced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    UPDATE streams SET stored = stored + octet_length(NEW.raw) + 1 WHERE owner = NEW.owner AND id = NEW.stream;
  ELSE
    UPDATE streams SET stored = stored - octet_length(OLD.raw) - 1 WHERE owner = OLD.owner AND id = OLD.stream;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION stored_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
  before bigint := 0;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    before := octet_length(OLD.summary) + octet_length(OLD.active_files);
  END IF;
  UPDATE streams SET stored = stored + octet_length(NEW.summary) + octet_length(NEW.active_files) - before
  WHERE owner = NEW.owner AND id = NEW.stream;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION usage_apply(come answers[], gone answers[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(s.project_hash, s.project, s.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, s.project_hash, s.project, s.machine,
    sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)
  FROM (SELECT 1 AS n, x.* FROM unnest(come) x UNION ALL SELECT -1, x.* FROM unnest(gone) x) a
  JOIN streams s ON s.owner = a.owner AND s.id = a.stream
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  HAVING (sum(a.n), sum(a.n * a.input), sum(a.n * a.output), sum(a.n * a.cache_read), sum(a.n * a.cache_write_5m),
    sum(a.n * a.cache_write_1h)) <> (0, 0, 0, 0, 0, 0)
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (owner, slot, place, model, long) DO UPDATE SET answers = u.answers + excluded.answers,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write_5m = u.cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = u.cache_write_1h + excluded.cache_write_1h;
  IF cardinality(gone) > 0 THEN
    DELETE FROM usage_sums WHERE answers = 0 AND owner IN (SELECT x.owner FROM unnest(gone) x);
  END IF;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION usage_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock(1667432450, NEW.owner::int);
  INSERT INTO usage_sums AS u
  SELECT a.owner, usage_slot(a.time), usage_place(p.hash, p.project, NEW.machine), left(a.model, 200),
    a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > 200000, p.hash, p.project, NEW.machine,
    sum(p.n), sum(p.n * a.input), sum(p.n * a.output), sum(p.n * a.cache_read), sum(p.n * a.cache_write_5m),
    sum(p.n * a.cache_write_1h)
  FROM (VALUES (-1, OLD.project_hash, OLD.project), (1, NEW.project_hash, NEW.project)) p (n, hash, project)
  CROSS JOIN answers a WHERE a.owner = NEW.owner AND a.stream = NEW.id AND a.counted
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (owner, slot, place, model, long) DO UPDATE SET answers = u.answers + excluded.answers,
    input = u.input + excluded.input, output = u.output + excluded.output,
    cache_read = u.cache_read + excluded.cache_read, cache_write_5m = u.cache_write_5m + excluded.cache_write_5m,
    cache_write_1h = u.cache_write_1h + excluded.cache_write_1h;
  DELETE FROM usage_sums WHERE answers = 0 AND owner = NEW.owner;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$ BEGIN
  RAISE EXCEPTION 'the owner stays first in the keys: restore a backup from before to go back';
END $$;
-- +goose StatementEnd
