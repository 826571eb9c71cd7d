-- +goose NO TRANSACTION
-- +goose Up
-- beside: yes

-- Which streams the sums do not have as they are. It is made while others write; what was interrupted begins again.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS streams_unsummed;
CREATE INDEX CONCURRENTLY streams_unsummed ON streams (owner, id) WHERE summed <> version;
SET lock_timeout = 2000;

-- +goose Down
DROP INDEX streams_unsummed;
