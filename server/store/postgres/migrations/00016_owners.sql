-- beside: yes
-- +goose NO TRANSACTION
-- +goose Up

-- Rows of a stream get its owner, so that tables can be spread by it. Servers of the version before do not write it: a
-- trigger does for them. Rows of before get it in the background, see owners.go. -1: not yet.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION fill_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_ARGV[0] = 'document' THEN
    SELECT d.owner INTO NEW.owner FROM documents d WHERE d.id = NEW.document;
  ELSIF TG_ARGV[0] = 'blob' THEN
    SELECT b.owner INTO NEW.owner FROM blobs b WHERE b.id = NEW.blob;
  ELSE
    SELECT s.owner INTO NEW.owner FROM streams s WHERE s.id = NEW.stream;
  END IF;
  NEW.owner := coalesce(NEW.owner, 0);
  RETURN NEW;
END $$;
-- +goose StatementEnd

-- Each table has a transaction of its own: it waits for none while it holds the lock of another one.
-- +goose StatementBegin
CREATE OR REPLACE PROCEDURE add_owner(tables text[], of text) LANGUAGE plpgsql AS $$ DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY tables LOOP
    EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS owner bigint NOT NULL DEFAULT -1', t);
    EXECUTE format('DROP TRIGGER IF EXISTS fill_owner ON %I', t);
    EXECUTE format('CREATE TRIGGER fill_owner BEFORE INSERT OR UPDATE ON %I FOR EACH ROW '
      'WHEN (NEW.owner = -1) EXECUTE FUNCTION fill_owner(%L)', t, of);
    COMMIT;
  END LOOP;
END $$;
-- +goose StatementEnd
CALL add_owner(ARRAY['epochs', 'generations', 'lines', 'superseded', 'folds', 'facts', 'drops', 'moments',
  'masked_lines', 'maskings', 'artifact_epochs', 'checkpoints', 'documents', 'blob_refs', 'link_requests', 'marks',
  'share_links'],
  'stream');
CALL add_owner(ARRAY['document_versions'], 'document');
CALL add_owner(ARRAY['blob_chunks'], 'blob');
DROP PROCEDURE add_owner;

-- +goose Down
-- +goose StatementBegin
DO $$ DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['epochs', 'generations', 'lines', 'superseded', 'folds', 'facts', 'drops', 'moments',
    'masked_lines', 'maskings', 'artifact_epochs', 'checkpoints', 'documents', 'blob_refs', 'link_requests', 'marks',
  'share_links',
    'document_versions', 'blob_chunks'] LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS fill_owner ON %I', t);
    EXECUTE format('ALTER TABLE %I DROP COLUMN owner', t); -- and with it the indexes that begin with it
  END LOOP;
END $$;
-- +goose StatementEnd
DROP INDEX IF EXISTS streams_owner_id, streams_owner_session, checkpoints_owner, documents_owner,
  document_versions_owner, blobs_owner_id, link_requests_owner, streams_id, streams_session, answers_owner_stream,
  share_links_hash;
DROP FUNCTION fill_owner;
