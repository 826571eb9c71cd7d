package tail

import "time"

// SinceHeartbeat returns the time since the main loop last made progress, which it does every few seconds; before its
// first turn, since New. A long time means that it hangs.
func (t *Tailer) SinceHeartbeat() time.Duration {
	return t.now() - time.Duration(t.lastHeartbeat.Load())
}

// heartbeat records that the main loop makes progress.
func (t *Tailer) heartbeat() { t.lastHeartbeat.Store(int64(t.now())) }
