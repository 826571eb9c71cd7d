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

// measured is what a store is asked. It may be a server.Sizer too.
type measured interface {
	Lag(ctx context.Context) (int64, error)
	Cold(ctx context.Context) (server.Cold, error)
}

// Store adds what a store knows of itself.
func (p *metricsPage) Store(ctx context.Context, st measured) error {
	lag, err := st.Lag(ctx)
	if err != nil {
		return err
	}
	p.One("ccship_server_derive_lag_streams", "gauge", "transcripts with lines not derived from yet", float64(lag))
	cold, err := st.Cold(ctx)
	if err != nil {
		return err
	}
	p.cold(cold)
	store, ok := st.(server.Sizer)
	if !ok {
		return nil
	}
	sizes, err := store.Sizes(ctx)
	if err != nil {
		return err
	}
	p.One("ccship_server_store_bytes", "gauge", "size of the store", float64(sizes.Bytes))
	p.One("ccship_server_store_streams", "gauge", "transcripts stored", float64(sizes.Streams))
	return nil
}

// cold adds what is known of cold storage, if there is any.
func (p *metricsPage) cold(c server.Cold) {
	if c.Place == "" {
		return
	}
	up := 1.0
	if c.Err != nil {
		up = 0
	}
	p.One("ccship_server_cold_up", "gauge", "1 if cold storage answered when it was used last", up)
	p.One("ccship_server_cold_objects", "gauge", "objects there", float64(c.Objects))
	p.One("ccship_server_cold_bytes", "gauge", "their bytes", float64(c.Bytes))
	p.One("ccship_server_cold_pending", "gauge", "objects being written or removed", float64(c.Pending))
}
