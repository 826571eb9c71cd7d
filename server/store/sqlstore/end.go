package sqlstore

import (
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

// Written is what a batch changed: lines from from up to before to.
type Written struct {
	Any      bool
	From, To int64
}
