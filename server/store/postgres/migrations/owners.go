package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// withOwners is the migration that adds the owner to the rows of streams; the one behind it makes it the first column
// of their keys. Between the two, servers of the version before may go on.
const withOwners = 16

// owned is a table whose rows get the owner of what they are of.
type owned struct{ name, of string }

// ownedTables are those of 00016_owners.sql.
func ownedTables() (out []owned) {
	for _, name := range strings.Fields(`epochs generations lines superseded folds facts drops moments masked_lines
		maskings artifact_epochs checkpoints documents blob_refs link_requests marks share_links`) {
		out = append(out, owned{name, "streams s ON s.id = t.stream"})
	}
	return append(out, owned{"document_versions", "documents s ON s.id = t.document"},
		owned{"blob_chunks", "blobs s ON s.id = t.blob"})
}

// index is an index to build.
type index struct {
	name, on string
	unique   bool
}

// ownerIndexes are built while everybody goes on; 00017_owner_keys.sql makes keys of them.
func ownerIndexes() (out []index) {
	list := ownerIndexList
	for i := range linePartitions {
		list += fmt.Sprintf("UNIQUE lines_%d_owner ON lines_%d (owner, stream, epoch, generation, line)\n", i, i)
	}
	for line := range strings.Lines(list) {
		rest, unique := strings.CutPrefix(strings.TrimSpace(line), "UNIQUE ")
		name, on, _ := strings.Cut(rest, " ")
		out = append(out, index{name, on, unique})
	}
	return out
}

const ownerIndexList = `UNIQUE streams_owner_id ON streams (owner, id)
UNIQUE streams_owner_session ON streams (owner, session_key, machine_key)
streams_id ON streams (id)
streams_session ON streams USING hash (session_key)
UNIQUE epochs_owner ON epochs (owner, stream, rank)
UNIQUE epochs_owner_name ON epochs (owner, stream, name_key)
UNIQUE generations_owner ON generations (owner, stream, epoch, generation)
superseded_owner ON superseded (owner, stream, epoch, generation, line)
UNIQUE folds_owner ON folds (owner, stream)
UNIQUE facts_owner ON facts (owner, stream)
UNIQUE drops_owner ON drops (owner, stream, epoch, generation)
UNIQUE moments_owner ON moments (owner, stream, line, part)
answers_owner_stream ON answers (owner, stream)
UNIQUE masked_lines_owner ON masked_lines (owner, stream, line, epoch, generation)
UNIQUE maskings_owner ON maskings (owner, stream, asked_by)
UNIQUE artifact_epochs_owner ON artifact_epochs (owner, stream, rank)
UNIQUE artifact_epochs_owner_name ON artifact_epochs (owner, stream, name_key)
UNIQUE checkpoints_owner ON checkpoints (owner, num)
UNIQUE checkpoints_owner_id ON checkpoints (owner, stream, id)
UNIQUE documents_owner ON documents (owner, id)
UNIQUE documents_owner_path ON documents (owner, stream, path_key)
UNIQUE document_versions_owner ON document_versions (owner, id)
UNIQUE document_versions_owner_n ON document_versions (owner, document, rank, n, change, sha256)
UNIQUE blobs_owner_id ON blobs (owner, id)
UNIQUE blob_chunks_owner ON blob_chunks (owner, blob, place)
UNIQUE blob_refs_owner ON blob_refs (owner, stream, name_key, sha256)
UNIQUE link_requests_owner ON link_requests (owner, num)
UNIQUE link_requests_owner_id ON link_requests (owner, id)
UNIQUE marks_owner ON marks (owner, stream, reader)
UNIQUE share_links_owner ON share_links (owner, id)
UNIQUE share_links_owner_hash ON share_links (owner, hash)
share_links_hash ON share_links USING hash (hash)
`

const (
	// linePartitions is how many partitions table lines has.
	linePartitions = 16
	// fillPages is how many pages of a table one transaction reads.
	fillPages = 256
	// tellEvery is the time between two words on how far it is.
	tellEvery = 5 * time.Second
)

// giveOwners fills in the owner of every row, and builds the indexes that begin with it. It may be interrupted and goes
// on where it was. It waits for nobody while it holds a lock that others want. A fresh database has no rows.
func (m *Migration) giveOwners(ctx context.Context, fresh bool) error {
	if fresh {
		for _, x := range ownerIndexes() {
			if err := x.create(ctx, m.db, "IF NOT EXISTS "); err != nil {
				return err
			}
		}
		return nil
	}
	for _, t := range ownedTables() {
		names := []string{t.name}
		if t.name == "lines" {
			names = nil
			for i := range linePartitions {
				names = append(names, fmt.Sprintf("lines_%d", i))
			}
		}
		for _, name := range names {
			if err := m.fillOwners(ctx, owned{name, t.of}); err != nil {
				return fmt.Errorf("fill in owners of table %s: %w", name, err)
			}
		}
	}
	for _, x := range ownerIndexes() {
		if err := m.buildIndex(ctx, x); err != nil {
			return fmt.Errorf("build index %s: %w", x.name, err)
		}
	}
	return nil
}

// fillOwners gives the rows of a table their owner, some pages at a time. Rows that others have locked are passed over
// and come next time: it never waits for those who wait for it.
func (m *Migration) fillOwners(ctx context.Context, t owned) error {
	query := `
WITH todo AS (
  SELECT ctid FROM ` + t.name + ` WHERE owner = -1 AND ctid >= $1::tid AND ctid < $2::tid FOR UPDATE SKIP LOCKED
), found AS (
  SELECT t.ctid AS at, coalesce(s.owner, 0) AS owner FROM ` + t.name + ` t LEFT JOIN ` + t.of + `
  WHERE t.ctid = ANY (ARRAY(SELECT ctid FROM todo))
)
UPDATE ` + t.name + ` t SET owner = f.owner FROM found f WHERE t.ctid = f.at`
	said := time.Now()
	for {
		var pages int64
		var some bool
		err := m.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+t.name+` WHERE owner = -1),
  pg_relation_size('`+t.name+`') / current_setting('block_size')::bigint`).Scan(&some, &pages)
		if err != nil || !some {
			return err
		}
		for at := int64(0); at < pages; at += fillPages {
			if time.Since(said) > tellEvery {
				said = time.Now()
				m.how.Tell("owners are filled in beside servers that go on: table %s, %d of %d pages", t.name, at, pages)
			}
			_, err := m.db.ExecContext(ctx, query, fmt.Sprintf("(%d,0)", at), fmt.Sprintf("(%d,0)", at+fillPages))
			if err != nil {
				return err
			}
		}
	}
}

// buildIndex builds an index without keeping anybody from writing. One that was interrupted is built again.
func (m *Migration) buildIndex(ctx context.Context, x index) error {
	var valid, invalid bool
	err := m.db.QueryRowContext(ctx, `SELECT coalesce(bool_or(indisvalid), false), coalesce(bool_or(NOT indisvalid), false)
FROM pg_index WHERE indexrelid = to_regclass($1)`, x.name).Scan(&valid, &invalid)
	if err != nil || valid {
		return err
	}
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// It waits for transactions that began before it by way of locks, which nobody else wants.
	if _, err := conn.ExecContext(ctx, `SET lock_timeout = 0`); err != nil {
		return err
	}
	if invalid {
		if _, err := conn.ExecContext(ctx, `DROP INDEX CONCURRENTLY `+x.name); err != nil {
			return err
		}
	}
	if err := x.create(ctx, conn, "CONCURRENTLY "); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf(`SET lock_timeout = %d`, lockPatience.Milliseconds()))
	return err
}

func (x index) create(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, how string) error {
	unique := ""
	if x.unique {
		unique = "UNIQUE "
	}
	_, err := db.ExecContext(ctx, `CREATE `+unique+`INDEX `+how+x.name+` `+x.on)
	return err
}
