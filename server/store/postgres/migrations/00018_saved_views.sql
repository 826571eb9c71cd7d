-- +goose Up
-- beside: yes

-- What users filter by, kept under a name.
CREATE TABLE saved_views (
  owner   bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name    text COLLATE "C" NOT NULL,
  page    text COLLATE "C" NOT NULL,          -- whose filters they are
  query   text COLLATE "C" NOT NULL,          -- of its address
  updated bigint NOT NULL,
  PRIMARY KEY (owner, name)
);

-- +goose Down
DROP TABLE saved_views;
