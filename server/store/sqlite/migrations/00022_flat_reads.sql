-- +goose Up

-- Segments of all owners from the newest on: a search by somebody who sees everything reads as many as it shows of.
CREATE INDEX gram_segments_newest ON gram_segments (newest DESC, owner, id) WHERE level >= 0;

-- Whose rewrites they are, so that those of one owner are found without those of others.
ALTER TABLE drops ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
UPDATE drops SET owner = (SELECT s.owner FROM epochs e JOIN streams s ON s.id = e.stream WHERE e.id = drops.epoch)
WHERE EXISTS (SELECT 1 FROM epochs e JOIN streams s ON s.id = e.stream WHERE e.id = drops.epoch);
CREATE INDEX drops_owner ON drops (owner, epoch, generation) WHERE lines > 0;

-- +goose Down
DROP INDEX drops_owner;
ALTER TABLE drops DROP COLUMN owner;
DROP INDEX gram_segments_newest;
