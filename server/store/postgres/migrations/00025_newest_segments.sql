-- +goose NO TRANSACTION
-- +goose Up
-- beside: yes

-- Segments of all owners from the newest on: a search by somebody who sees everything reads as many as it shows of. It
-- is made while others write; what was interrupted begins again.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS gram_segments_newest;
CREATE INDEX CONCURRENTLY gram_segments_newest ON gram_segments (newest DESC, owner, id) WHERE level >= 0;
SET lock_timeout = 2000;

-- +goose Down
DROP INDEX gram_segments_newest;
