-- +goose Up

-- Standard names for what daemons send beside lines.
ALTER TABLE paper_epochs RENAME TO artifact_epochs;
ALTER TABLE wishes RENAME TO link_requests;
ALTER TABLE link_requests RENAME COLUMN wisher TO asked_by;
DROP INDEX wishes_stream;
DROP INDEX wishes_waiting;
CREATE INDEX link_requests_stream ON link_requests (stream, num);
CREATE INDEX link_requests_waiting ON link_requests (stream) WHERE state = 'waiting';

-- +goose Down
DROP INDEX link_requests_stream;
DROP INDEX link_requests_waiting;
ALTER TABLE link_requests RENAME COLUMN asked_by TO wisher;
ALTER TABLE link_requests RENAME TO wishes;
CREATE INDEX wishes_stream ON wishes (stream, num);
CREATE INDEX wishes_waiting ON wishes (stream) WHERE state = 'waiting';
ALTER TABLE artifact_epochs RENAME TO paper_epochs;
