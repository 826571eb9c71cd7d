package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgWords is what the index of words has, of the beginning of a text: one that is all different words still fits.
const pgWords = `to_tsvector('simple', left(t.indexed, 100000))`

// pgIndexTexts sees to an index of texts: of trigrams, with which any part of a word is found, or where the extension
// for them may not be had, of words. It answers which; the other one is dropped.
func pgIndexTexts(ctx context.Context, db *sql.DB) (trigrams bool, err error) {
	_, err = db.ExecContext(ctx, `CREATE EXTENSION IF NOT EXISTS pg_trgm`)
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
		return false, fmt.Errorf("make extension: %w", err)
	}
	trigrams = err == nil
	queries := []string{
		`CREATE INDEX IF NOT EXISTS texts_words ON texts USING gin (to_tsvector('simple', left(indexed, 100000)))`,
		`DROP INDEX IF EXISTS texts_trigrams`,
	}
	if trigrams {
		queries = []string{
			`CREATE INDEX IF NOT EXISTS texts_trigrams ON texts USING gin (indexed gin_trgm_ops)`,
			`DROP INDEX IF EXISTS texts_words`,
		}
	}
	for _, query := range queries {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return trigrams, fmt.Errorf("index texts: %w", err)
		}
	}
	return trigrams, nil
}
