//go:build linux

package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/ccship/ccship/lab/bench/corpus"
)

func bytesOf(all []corpus.Session) (n int64) {
	for _, s := range all {
		n += s.Bytes
	}
	return n
}

// compare reads every transcript's generations and compares them with what was sent.
func (b *bench) compare(all []corpus.Session) (lost, wrong int) {
	b.t.Helper()
	for _, s := range all {
		var view []string
		for _, chunk := range s.Chunks(b.source) {
			view = append(view[:chunk.RewoundTo:chunk.RewoundTo], chunk.Lines...)
			want := strings.Join(view, "\n") + "\n"
			at := fmt.Sprintf("/api/sessions/%s/raw?generation=%d", url.PathEscape(s.ID), chunk.Generation)
			got, err := b.user(s.Owner).Get(context.Background(), at)
			switch {
			case err != nil || len(got) < len(want):
				say("    %s: %d of %d bytes, %v", s.ID, len(got), len(want), err)
				lost++
			case !bytes.Equal(got, []byte(want)):
				wrong++
			}
		}
	}
	return lost, wrong
}
