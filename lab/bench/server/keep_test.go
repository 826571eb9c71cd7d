//go:build linux

package server_test

import (
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const keeping = "Start, backup, forgetting"

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// keeps measures what an administrator does: starts, copies, and removes a user's sessions.
func (b *bench) keeps(r *figures) {
	b.t.Helper()
	b.stop()
	r.Add(keeping, "start until it answers", b.start().Seconds(), "s")
	r.Aim("≤ 2 s at 10 GB")
	file := filepath.Join(b.t.TempDir(), "backup")
	r.Add(keeping, "backup", timed(func() { b.db.backup(file) }).Seconds(), "s")
	r.Add(keeping, "restore", timed(func() { b.db.restore(file) }).Seconds(), "s")
	before := b.db.size()
	var bytes int64
	forget := timed(func() { bytes = b.forget(len(b.members) / 2) })
	b.derived()
	b.quiet()
	b.stop()
	vacuum := timed(func() { b.db.vacuum(false) })
	after := b.db.size()
	b.db.vacuum(true)
	full := b.db.size()
	b.start()
	r.Add(keeping, "forget a user's sessions", forget.Seconds(), "s")
	r.Add(keeping, "… raw bytes forgotten", float64(bytes)/1e6, "MB")
	r.Add(keeping, "… VACUUM", vacuum.Seconds(), "s")
	r.Add(keeping, "… given back by VACUUM", float64(before-after)/1e6, "MB")
	r.Add(keeping, "… given back by VACUUM FULL", float64(before-full)/1e6, "MB")
	say("    forgotten %d MB in %s, VACUUM gave back %d MB, VACUUM FULL %d MB", bytes/1e6, forget, (before-after)/1e6,
		(before-full)/1e6)
}

// listed is one session of a list.
type listed struct {
	SessionID string  `json:"session_id"`
	Parent    *string `json:"parent_session_id"`
	Bytes     int64   `json:"bytes"`
}

// forget removes all sessions of a user, and returns how many bytes they had.
func (b *bench) forget(owner int) (bytes int64) {
	b.t.Helper()
	ctx, user := context.Background(), b.members[owner]
	var all []listed
	for after := ""; ; {
		var page struct {
			Sessions []listed
			Next     *string
		}
		text, err := user.Get(ctx, "/api/sessions?limit=1000&after="+url.QueryEscape(after))
		kit.Must(b.t, err)
		kit.Must(b.t, json.Unmarshal(text, &page))
		all = append(all, page.Sessions...)
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	for _, s := range all {
		bytes += s.Bytes
		if s.Parent == nil {
			_, err := user.Delete(ctx, "/api/sessions/"+url.PathEscape(s.SessionID))
			kit.Must(b.t, err)
		}
	}
	return bytes
}
