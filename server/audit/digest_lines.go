package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/ccship/ccship/server"
)

// LineHashes are the hashes of a view's lines from from up to before to, each over the line and a newline: nil where
// nothing is stored and nothing was retired.
func LineHashes(ctx context.Context, snap server.Snapshot, v server.View, from, to int64) ([]*string, error) {
	out := make([]*string, to-from)
	set := func(line int64, sum []byte) {
		text := hex.EncodeToString(sum)
		out[line-from] = &text
	}
	for _, span := range v.Between(from, to) {
		err := server.Readable(ctx, snap, span, func(l server.Line) error {
			if l.Kind != server.Oversize {
				h := sha256.New()
				h.Write(l.Raw)
				h.Write(lineEnd)
				set(l.Index, h.Sum(nil))
			}
			return nil
		}, nil)
		if err == nil {
			err = snap.Retired(ctx, span, true, func(r *server.RetiredRun) error {
				for _, l := range r.Lines {
					if span.From <= l.Index && l.Index < span.To {
						set(l.Index, l.SHA256)
					}
				}
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
