package api

import (
	"context"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/recall"
)

// stores is what the server asks of its store, by what it is about.
type stores struct {
	sessions  sessionStore
	search    server.Searcher
	artifacts server.Artifacts
	writes    writeStore
	users     server.Users
	masks     server.Masker
	recall    recall.Store
	people    accountStore
	kept      keptStore
	measured  measured
}

func storesOf(s server.Store) stores { return stores{s, s, s, s, s, s, s, s, s, s} }

type sessionStore interface {
	server.SessionFinder
	server.Forgetter
	KeptUntil(ctx context.Context, stream int64, now time.Time) (server.RetentionOutlook, error)
}

type writeStore interface {
	server.Ingester
	server.ArtifactIngester
	server.Ledgers
}
