package tail

import "time"

// SinceTurn is how long ago the main loop last came round, which it does at least every few seconds, or took up a
// folder in a listing; since New before its first turn. A long time says that it hangs.
func (t *Tailer) SinceTurn() time.Duration { return t.now() - time.Duration(t.turned.Load()) }

// turn notes that the main loop goes on.
func (t *Tailer) turn() { t.turned.Store(int64(t.now())) }
