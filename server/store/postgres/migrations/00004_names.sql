-- +goose Up

-- Standard names for what daemons send beside lines.
ALTER TABLE paper_epochs RENAME TO artifact_epochs;
ALTER TABLE wishes RENAME TO link_requests;
ALTER TABLE link_requests RENAME COLUMN wisher TO asked_by;
ALTER INDEX wishes_stream RENAME TO link_requests_stream;
ALTER INDEX wishes_waiting RENAME TO link_requests_waiting;

-- +goose Down
ALTER INDEX link_requests_stream RENAME TO wishes_stream;
ALTER INDEX link_requests_waiting RENAME TO wishes_waiting;
ALTER TABLE link_requests RENAME COLUMN asked_by TO wisher;
ALTER TABLE link_requests RENAME TO wishes;
ALTER TABLE artifact_epochs RENAME TO paper_epochs;
