package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

const (
	sweepEvery = 6 * time.Hour    // between two searches for abandoned uploads
	sealEvery  = 30 * time.Second // how long it takes until lines that fill a block are packed
	sealIdle   = 10 * time.Minute // how long a transcript must not grow until all of it is packed
	sumEvery   = 30 * time.Second // how often what changed is put into sums; until then each reader adds it
	retireLook = 10 * time.Minute // the longest time between two looks whether rules of retention are due
	coolLook   = 10 * time.Minute // the longest time between two looks for what became old
	removeLook = time.Minute      // how long it takes at most until what was forgotten is removed from cold storage
)

// upkeep has a store do what it needs now and then while a server runs. Several servers on one store may each do so.
type upkeep struct {
	store store.Store
	log   *slog.Logger
}

// chores returns what upkeep does, each until its context is done. retention is how long the rules of retention rest
// between two applications, cold the age of what is moved to cold storage; 0: nothing does it.
func (u upkeep) chores(retention, cold time.Duration) []func(context.Context) error {
	chores := []func(context.Context) error{
		u.every(sweepEvery, "remove abandoned uploads", u.sweep),
		u.every(sealEvery, "pack stored lines", u.seal),
		u.every(sumEvery, "sum up; answers are right but slow", u.sum),
	}
	if retention > 0 {
		chores = append(chores, u.every(min(retireLook, max(retention/4, 100*time.Millisecond)),
			"apply the rules of retention", func(ctx context.Context) error { return u.retire(ctx, retention) }))
	}
	look, pause := min(coolLook, max(cold/10, time.Second)), removeLook // a small part of the age
	if cold > 0 {
		pause = min(pause, look)
	}
	var looked time.Time
	return append(chores, u.every(pause, "use cold storage", func(ctx context.Context) error {
		err := u.store.Sweep(ctx)
		if err == nil && cold > 0 && time.Since(looked) >= look {
			looked = time.Now()
			err = u.cool(ctx, cold)
		}
		return err
	}))
}

// every returns what does a chore at once, and then at intervals until its context is done. It logs failures, the same
// one once.
func (u upkeep) every(interval time.Duration, what string, chore func(context.Context) error) func(
	context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		said := ""
		for {
			err := chore(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				said = ""
			case err.Error() != said:
				said = err.Error()
				u.log.Warn("cannot "+what+"; it is tried again, and nothing is lost", "err", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// sweep removes uploads that were started and abandoned.
func (u upkeep) sweep(ctx context.Context) error {
	n, err := u.store.SweepBlobs(ctx, time.Now().Add(-server.BlobPatience))
	if n > 0 {
		u.log.Info("abandoned uploads removed", "uploads", n)
	}
	return err
}

// seal packs lines that came alive.
func (u upkeep) seal(ctx context.Context) error {
	n, err := u.store.Seal(ctx, time.Now().Add(-sealIdle))
	if n > 0 {
		u.log.Debug("packed stored lines", "blocks", n)
	}
	return err
}

// sum puts what changed into sums. Of several servers on one store one does it at a time.
func (u upkeep) sum(ctx context.Context) error {
	more, err := true, error(nil)
	for more && err == nil && ctx.Err() == nil {
		more, err = u.store.SumUp(ctx)
	}
	return err
}

// retire applies the rules of retention if they are due. Of several servers on one store one does it. What is
// interrupted goes on at the next look.
func (u upkeep) retire(ctx context.Context, every time.Duration) error {
	done, err := u.store.Retire(ctx, server.RetireOptions{By: "ccship-server", Now: time.Now(), Every: every})
	for _, n := range done.Counts {
		u.log.Info("rule of retention applied", "rule", n.Rule, "user", n.User, "sessions", n.Sessions, "lines", n.Lines,
			"files", n.Files, "bytes", n.Bytes)
	}
	return err
}

// cool moves what is older than an age to cold storage.
func (u upkeep) cool(ctx context.Context, age time.Duration) error {
	done, err := u.store.Cool(ctx, time.Now().Add(-age))
	if done.Objects > 0 {
		u.log.Info("moved to cold storage", "objects", done.Objects, "bytes", done.Bytes)
	}
	return err
}
