-- +goose Up

-- Up to which line folds.state goes; -1: as far as its stream is derived.
ALTER TABLE folds ADD COLUMN state_line INTEGER NOT NULL DEFAULT -1;

-- derived is above 0 once a stream was wholly derived, and below while all of it is derived again. leased is also when
-- a stream was derived last: of several that lag, the one that waits longest comes first.
DROP INDEX streams_lagging;
CREATE INDEX streams_lagging_live ON streams (leased) WHERE version > derived AND derived > 0;
CREATE INDEX streams_lagging_whole ON streams (derived, last_received) WHERE version > derived AND derived <= 0;

-- +goose Down
DROP INDEX streams_lagging_whole;
DROP INDEX streams_lagging_live;
CREATE INDEX streams_lagging ON streams (last_received) WHERE version > derived;
UPDATE streams SET derived = 0 WHERE derived < 0;
DELETE FROM folds WHERE state_line >= 0 AND state_line <> line;
ALTER TABLE folds DROP COLUMN state_line;
