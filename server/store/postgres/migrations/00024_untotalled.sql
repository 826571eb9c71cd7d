-- +goose NO TRANSACTION
-- +goose Up
-- beside: yes

-- Which sums the totals do not have as they are. It is made while others write; what was interrupted begins again.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS usage_sums_untotalled;
CREATE INDEX CONCURRENTLY usage_sums_untotalled ON usage_sums (owner, slot) WHERE total = 0;
SET lock_timeout = 2000;

-- +goose Down
DROP INDEX usage_sums_untotalled;
