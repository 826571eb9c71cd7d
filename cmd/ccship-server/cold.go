package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

// coldPatience is how long status waits for what is asked of a store.
const coldPatience = 20 * time.Second

// coldReport is what status says of cold storage, and of what could go there.
type coldReport struct {
	Place    string     `json:"place,omitempty"`
	Objects  int64      `json:"objects"`
	Bytes    int64      `json:"bytes"`
	Pending  int64      `json:"pending"`              // objects that are being written, or still to be removed
	Left     int64      `json:"sessions_left"`        // transcripts of which something could be moved
	Since    *time.Time `json:"left_since,omitempty"` // when the one that rests longest got its last lines
	Unpacked int64      `json:"unpacked_lines"`       // which are not packed, so they can't be moved yet
	Oldest   *time.Time `json:"oldest_unpacked,omitempty"`
	Problem  string     `json:"problem,omitempty"`
}

// examineCold looks into a store; nil: it has no cold storage, or is none yet.
func examineCold(ctx context.Context, url string) *coldReport {
	ctx, cancel := context.WithTimeout(ctx, coldPatience)
	defer cancel()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); err != nil {
			return nil // opening it would make it
		}
	}
	st, err := openStore(ctx, url, store.Opening{AsIs: true})
	if errors.Is(err, store.ErrOutdated) {
		return nil
	}
	if err != nil {
		return &coldReport{Problem: err.Error()}
	}
	cold, err := st.Cold(ctx)
	var warm server.Warm
	if err == nil && cold.Place != "" {
		warm, err = st.Warm(ctx)
	}
	if err = errors.Join(err, st.Close()); err != nil {
		return &coldReport{Place: redact(cold.Place), Problem: err.Error()}
	}
	if cold.Place == "" {
		return nil
	}
	return &coldReport{Place: redact(cold.Place), Objects: cold.Objects, Bytes: cold.Bytes, Pending: cold.Pending,
		Left: warm.Streams, Since: moment(warm.Since), Unpacked: warm.Lines, Oldest: moment(warm.Oldest)}
}

func (r *coldReport) print(w io.Writer) error {
	if r.Problem != "" {
		return term.Printf(w, "cold     cannot be looked at: %s\n", r.Problem)
	}
	ago := func(t *time.Time, what string) string {
		if t == nil {
			return ""
		}
		return fmt.Sprintf(", %s %s", what, amount.Ago(time.Now(), *t))
	}
	term.Printf(w, "cold     %s, %s in %s", r.Place, amount.Size(r.Bytes), amount.Counted(r.Objects, "object", "objects"))
	if r.Pending > 0 {
		term.Printf(w, " (%d being written or removed)", r.Pending)
	}
	return term.Printf(w, "\nnot cold %s%s; %s not packed yet%s\n",
		amount.Counted(r.Left, "transcript", "transcripts"), ago(r.Since, "the oldest got its last lines"),
		amount.Counted(r.Unpacked, "line", "lines"), ago(r.Oldest, "the oldest came"))
}
