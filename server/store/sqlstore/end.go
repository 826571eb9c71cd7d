package sqlstore

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

// End is where a stream's newest generation ended before a batch.
type End struct {
	Epoch                     int64 // the batch's
	Front                     bool  // no epoch is newer
	First                     bool  // the epoch has no generation yet
	Generation, Rewound, Line int64
}

// Behind says whether a batch stored something other than at the stream's end: what is derived may lack it.
func (e End) Behind(h *server.Head, w Written) bool {
	switch {
	case e.Front && (e.First || h.Generation > e.Generation):
		return false
	case e.Front && h.Generation == e.Generation:
		return w.Any && w.From < e.Line || h.RewoundTo < e.Rewound
	}
	return true
}

// Written is what a batch changed: lines from from up to before to, and by how many bytes its generation grew.
type Written struct {
	Any      bool
	From, To int64
	Bytes    int64
}

// CheckFront refuses a batch with a Writer that would begin an epoch besides another one, go on in one that is not in
// front, or move the start of the newest generation. A *server.StreamError has the position where the writer continues.
// An epoch that the batch began is in front already.
func (e *End) CheckFront(ctx context.Context, d Dialect, of OwnedStream, h *server.Head) error {
	if h.Writer.Incarnation == "" {
		return nil
	}
	if e.Front && !e.First {
		if h.Generation == e.Generation && h.RewoundTo != e.Rewound {
			return &server.StreamError{Code: protocol.CodeOtherBytes, Epoch: h.Epoch, Generation: e.Generation,
				Line: min(h.RewoundTo, e.Rewound)}
		}
		return nil
	}
	var front *server.StreamError
	err := d.Query(ctx, `
SELECT e.name, g.generation, CASE WHEN g.end_line > g.rewound_to THEN g.end_line ELSE g.rewound_to END
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank
WHERE e.owner = ? AND e.stream = ? AND e.rank <> ?
ORDER BY e.rank DESC, g.generation DESC LIMIT 1`, []any{of.Owner, of.Stream, e.Epoch}, func(row Scanner) error {
		front = &server.StreamError{Code: protocol.CodeOtherEpoch}
		return row.Scan(&front.Epoch, &front.Generation, &front.Line)
	})
	if err != nil {
		return fmt.Errorf("find the epoch in front: %w", err)
	}
	if front != nil {
		return front
	}
	return nil
}
