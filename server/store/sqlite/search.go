package sqlite

import (
	"context"

	"github.com/ccship/ccship/server"
)

// Search implements server.Searcher.
func (s *Store) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	return s.texts.Search(ctx, scope, q)
}

// Rank implements server.Searcher.
func (s *Store) Rank(ctx context.Context, scope server.Scope, a server.RankQuery) (server.Ranked, error) {
	return s.texts.Rank(ctx, scope, a)
}
